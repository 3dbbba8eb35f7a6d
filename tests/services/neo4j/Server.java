import org.neo4j.server.CommunityEntryPoint;

/** Neo4j that ends with whoever started it: a process that dies, however it dies, closes our standard input. */
class Server {
    public static void main(String[] arguments) {
        Thread watch = new Thread(Server::haltWhenInputEnds);
        watch.setDaemon(true);
        watch.start();
        CommunityEntryPoint.main(arguments);
    }

    private static void haltWhenInputEnds() {
        try {
            while (System.in.read() >= 0) {}
        } catch (java.io.IOException closed) {
            // as good as its end
        }
        Runtime.getRuntime().halt(1);
    }
}
