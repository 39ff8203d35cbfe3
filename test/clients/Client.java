import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.logging.Logger;
import javax.sql.DataSource;

/** Writes rows with PostgreSQL's JDBC driver and HikariCP until it is ended. See test/clients/README.md. */
public class Client {
  public static void main(String[] args) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(new Mounted(Path.of(args[0], args[1])));
    config.setMaximumPoolSize(2);
    config.setConnectionTimeout(5000);
    config.setInitializationFailTimeout(-1);
    HikariDataSource pool = new HikariDataSource(config);
    for (int i = 0; i < 2; i++) {
      String worker = args[2] + "-" + i;
      new Thread(() -> work(pool, worker)).start();
    }
  }

  static void work(DataSource pool, String worker) {
    for (int row = 1; ; row++) {
      try (Connection session = pool.getConnection();
          var insert = session.prepareStatement("INSERT INTO written VALUES (?, ?)")) {
        insert.setString(1, worker);
        insert.setInt(2, row);
        insert.executeUpdate();
        System.out.println("ok " + worker + " " + row);
      } catch (SQLException e) {
        Throwable why = e.getCause() == null ? e : e.getCause(); // what keeps the pool from connecting
        System.out.println("error " + worker + " " + row + " " + String.valueOf(why.getMessage()).replace('\n', ' '));
        pause(100);
      }
      pause(20);
    }
  }

  static void pause(int milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Connects by the string that a mounted Secret has at that moment. */
  record Mounted(Path string) implements DataSource {
    public Connection getConnection() throws SQLException {
      try {
        return DriverManager.getConnection(Files.readString(string));
      } catch (IOException e) {
        throw new SQLException(e);
      }
    }

    public Connection getConnection(String user, String password) throws SQLException {
      return getConnection();
    }

    public PrintWriter getLogWriter() {
      return null;
    }

    public void setLogWriter(PrintWriter out) {}

    public void setLoginTimeout(int seconds) {}

    public int getLoginTimeout() {
      return 0;
    }

    public Logger getParentLogger() {
      return Logger.getGlobal();
    }

    public <T> T unwrap(Class<T> type) throws SQLException {
      throw new SQLException("wraps nothing");
    }

    public boolean isWrapperFor(Class<?> type) {
      return false;
    }
  }
}
