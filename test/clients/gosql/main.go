// Command gosql writes rows with database/sql and pgx until it is ended. See test/clients/README.md.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

func main() {
	file, name := filepath.Join(os.Args[1], os.Args[2]), os.Args[3]
	first, err := settings(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gosql:", err)
		os.Exit(1)
	}
	// The string is read anew for each session: the Secret may have changed.
	pool := stdlib.OpenDB(*first, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		now, err := settings(file)
		if err == nil {
			*c = *now
		}
		return err
	}))
	pool.SetMaxOpenConns(2)
	go work(pool, name+"-0")
	work(pool, name+"-1")
}

func settings(file string) (*pgx.ConnConfig, error) {
	uri, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(string(uri))
	if err == nil {
		config.ConnectTimeout = 5 * time.Second
	}
	return config, err
}

func work(pool *sql.DB, worker string) {
	for row := 1; ; row++ {
		if _, err := pool.Exec("INSERT INTO written VALUES ($1, $2)", worker, row); err != nil {
			fmt.Println("error", worker, row, strings.ReplaceAll(err.Error(), "\n", " "))
			time.Sleep(100 * time.Millisecond)
		} else {
			fmt.Println("ok", worker, row)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
