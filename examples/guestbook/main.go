// Command guestbook is a small web application for Toban's examples. Visitors leave entries, which it keeps in
// its PostgreSQL; it says which of its Pods has answered.
//
// It is written as an application that runs with a database that fails over should be: it repeats what can be repeated
// (book.go), its schema is brought up to date by a command of its own, once, before the new version starts
// (migrate.go), and it stops without losing a request (serve.go). Besides PostgreSQL's driver it needs nothing but Go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// version is the program's, and set when it is built: -ldflags '-X main.version=1'. Version N needs the first N
// migrations. An application of one's own has its versions one after the other in its history;
// this one has them all at once, so that its examples can show an update:
//
//	1  name and message
//	2  the place they come from, a column more
//	3  one entry for each name: its migration fails where somebody has written twice
var version = "2"

const usage = `usage: guestbook COMMAND [FLAGS]

  serve    answer requests until SIGTERM
  migrate  bring the database's schema to this version
  version  print the version

The database is found by PostgreSQL's own variables, such as PGHOST, PGUSER, PGPASSWORD, PGDATABASE, PGSSLMODE
and PGSSLROOTCERT.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	if err := run(ctx, log, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "guestbook:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger, args []string) error {
	number, err := strconv.Atoi(version)
	if err != nil || number < 1 || number > len(migrations) {
		return fmt.Errorf("it was built as version %q, and there are 1 to %d", version, len(migrations))
	}
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "serve":
		return serveCommand(ctx, log, number, args)
	case "migrate":
		return migrateCommand(ctx, log, number, args)
	case "version":
		fmt.Println(version)
		return nil
	default:
		return errors.New(usage)
	}
}

func serveCommand(ctx context.Context, log *slog.Logger, number int, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	listen := flags.String("listen", ":8080", "address to listen on")
	// The Pods of a MyApp need no drain: they are out of the Service for a while before they are asked to end.
	drain := flags.Duration("drain", 0, "how long requests are still taken after SIGTERM, until nobody sends any")
	patience := flags.Duration("patience", 15*time.Second, "how long a request waits for the database")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pod, err := os.Hostname() // of a Pod: its name
	if err != nil {
		return fmt.Errorf("find out the name of this Pod: %w", err)
	}
	book, err := openBook(ctx, number, *patience)
	if err != nil {
		return err
	}
	defer book.close()
	return serve(ctx, site{book: book, log: log, pod: pod}, *listen, *drain)
}

func migrateCommand(ctx context.Context, log *slog.Logger, number int, args []string) error {
	flags := flag.NewFlagSet("migrate", flag.ContinueOnError)
	patience := flags.Duration("patience", time.Minute, "how long to wait for the database")
	if err := flags.Parse(args); err != nil {
		return err
	}
	book, err := openBook(ctx, number, *patience)
	if err != nil {
		return err
	}
	defer book.close()
	return book.migrate(ctx, log)
}
