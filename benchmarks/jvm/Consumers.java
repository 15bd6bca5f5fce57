package skewless.benchmarks;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.function.FlatMapGroupsWithStateFunction;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.GroupStateTimeout;
import org.apache.spark.sql.streaming.OutputMode;
import scala.Tuple2;

/** The black box of benchmarks/shuffle.py by Spark's own operator in the JVM, without Python. */
public final class Consumers {
    private static final int HEAD = 4 * Long.BYTES;

    private Consumers() {}

    /** The events of rows of consumer, time and data. */
    public static Dataset<Row> events(Dataset<Row> rows, int stateBytes, int output) {
        FlatMapGroupsWithStateFunction<Long, Row, byte[], Tuple2<Long, byte[]>> accept = (consumer, records, state) -> {
            byte[] kept = state.exists() ? state.get() : null;
            List<Tuple2<Long, byte[]>> events = new ArrayList<>();
            while (records.hasNext()) {
                Row record = records.next();
                kept = after(kept, record.getLong(1), record.getAs(2), stateBytes);
                if (ByteBuffer.wrap(kept).getLong(0) == output) {
                    events.add(new Tuple2<>(consumer, kept));
                    kept = null;
                }
            }
            if (kept != null) {
                state.update(kept);
            } else if (state.exists()) {
                state.remove();
            }
            return events.iterator();
        };
        return rows.groupByKey((MapFunction<Row, Long>) row -> row.getLong(0), Encoders.LONG())
                .flatMapGroupsWithState(
                        accept,
                        OutputMode.Update(),
                        Encoders.BINARY(),
                        Encoders.tuple(Encoders.LONG(), Encoders.BINARY()),
                        GroupStateTimeout.NoTimeout())
                .toDF("consumer", "event");
    }

    private static byte[] after(byte[] kept, long time, byte[] data, int stateBytes) {
        ByteBuffer old = kept == null ? null : ByteBuffer.wrap(kept);
        long count = old == null ? 0 : old.getLong(0);
        long total = old == null ? 0 : old.getLong(8);
        long first = old == null ? time : old.getLong(16);
        ByteBuffer now = ByteBuffer.allocate(stateBytes);
        now.putLong(count + 1).putLong(total + ByteBuffer.wrap(data).getLong()).putLong(first).putLong(time);
        now.put(data, 0, stateBytes - HEAD);
        return now.array();
    }
}
