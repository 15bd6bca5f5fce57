"""The paper on sliding windows (Balkesen and Tatbul, DMSN 2011): partitioners, cost model, ring, and a cluster."""
