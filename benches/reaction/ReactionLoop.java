import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.TopicDescription;

/**
 * The loop of the sidecar for one plain topology, written with Java's AdminClient: what one would write by hand.
 *
 * <p>Arguments: bootstrap servers, poll interval in milliseconds, the input, then the internal topics that follow it. Prints
 * {@code {"ready":true}} after the first observation, and for each growth one line of JSON with the moments it was seen,
 * requested, answered and verified, in microseconds since 1970.
 */
public final class ReactionLoop {
    /** As long as the sidecar waits before it looks again for counts that a broker does not show yet. */
    private static final long VERIFY_PAUSE_MS = Long.getLong("verify.pause.ms");

    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private ReactionLoop() {}

    public static void main(String[] args) throws ExecutionException, InterruptedException {
        long interval = Long.parseLong(args[1]);
        String input = args[2];
        List<String> names = List.of(args).subList(2, args.length);
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", args[0], "client.id", "reaction-loop"))) {
            counts(admin, names);
            OUT.println("{\"ready\":true}");
            while (true) {
                Thread.sleep(interval);
                Map<String, Integer> counts = counts(admin, names);
                long seen = now();
                if (!lacking(counts, input).isEmpty()) {
                    follow(admin, names, counts, input, seen);
                }
            }
        }
    }

    private static void follow(Admin admin, List<String> names, Map<String, Integer> seenCounts, String input, long seen)
            throws ExecutionException, InterruptedException {
        Map<String, NewPartitions> targets = new HashMap<>();
        for (String topic : lacking(seenCounts, input)) {
            targets.put(topic, NewPartitions.increaseTo(seenCounts.get(input)));
        }
        long requested = now();
        admin.createPartitions(targets).all().get();
        long replied = now();
        while (!lacking(counts(admin, names), input).isEmpty()) {
            Thread.sleep(VERIFY_PAUSE_MS);
        }
        OUT.printf("{\"seen\":%d,\"requested\":%d,\"replied\":%d,\"verified\":%d}%n", seen, requested, replied, now());
    }

    private static Map<String, Integer> counts(Admin admin, List<String> names) throws ExecutionException, InterruptedException {
        Map<String, Integer> counts = new HashMap<>();
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get().values()) {
            counts.put(topic.name(), topic.partitions().size());
        }
        return counts;
    }

    private static List<String> lacking(Map<String, Integer> counts, String input) {
        int wanted = counts.get(input);
        List<String> lacking = new ArrayList<>();
        counts.forEach((topic, count) -> {
            if (count < wanted) {
                lacking.add(topic);
            }
        });
        return lacking;
    }

    private static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}
