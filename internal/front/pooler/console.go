package pooler

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres/sql"
)

// consoleUser and consoleDatabase are PgBouncer's own (PgBouncer 1.24 documentation, "usage", "admin console").
const consoleUser, consoleDatabase = "pgbouncer", "pgbouncer"

// consolePatience is how long a command may take that waits for no client.
const consolePatience = 2 * time.Second

// console commands PgBouncer by its Unix socket.
type console struct {
	folder string
	port   uint16
}

// connect opens a session.
func (c console) connect(ctx context.Context) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("connect to PgBouncer: %w", err)
	}
	config.Host, config.Port, config.User, config.Database = c.folder, c.port, consoleUser, consoleDatabase
	config.Password, config.Fallbacks, config.RuntimeParams = "", nil, map[string]string{}
	session, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to PgBouncer: %w", err)
	}
	return session, nil
}

// do carries out a command, and returns the rows of its answer, by the names of their columns.
func (c console) do(ctx context.Context, command string) ([]map[string]string, error) {
	session, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer session.Close(context.WithoutCancel(ctx))
	results, err := session.Exec(ctx, command).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("PgBouncer: %s: %w", command, err)
	}
	var rows []map[string]string
	for _, result := range results {
		for _, values := range result.Rows {
			row := map[string]string{}
			for i, field := range result.FieldDescriptions {
				row[field.Name] = string(values[i])
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// quick is do for a command that waits for no client.
func (c console) quick(ctx context.Context, command string) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, consolePatience)
	defer cancel()
	return c.do(ctx, command)
}

// awaitUp waits until PgBouncer answers, or has ended.
func (c console) awaitUp(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		_, err := c.quick(ctx, "SHOW VERSION")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-ended:
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leave leaves all servers but those at some addresses. Clients with a transaction on another one are ended, because
// PgBouncer would wait for that server, unless it is at an address that is spared; it says how many. Other sessions
// PgBouncer closes without a client's notice. With anew it also opens those anew that stay, so that they spread.
func (c console) leave(
	ctx context.Context, stay, spared []netip.Addr, anew bool,
) (ended int, err error) {
	servers, err := c.quick(ctx, "SHOW SERVERS")
	if err != nil {
		return 0, err
	}
	stale := map[string]bool{} // the clients, by PgBouncer's pointers
	found, leaves := false, false
	for _, s := range servers {
		at, err := netip.ParseAddr(s["addr"])
		if err != nil { // it is looked up
			continue
		}
		stays := slices.Contains(stay, at)
		found, leaves = true, leaves || !stays
		if !stays && !slices.Contains(spared, at) {
			stale[s["link"]] = true
		}
	}
	switch {
	case leaves:
	case found && anew:
		c.awaitNoLogin(ctx, loginPatience) // nobody is in a hurry
	default:
		return 0, nil // RECONNECT would break off a look-up that waits
	}
	if _, err := c.quick(ctx, "RECONNECT"); err != nil {
		return 0, err
	}
	delete(stale, "")
	return c.endClients(ctx, stale)
}

// endClients ends clients by PgBouncer's pointers to them.
func (c console) endClients(ctx context.Context, pointers map[string]bool) (ended int, err error) {
	if len(pointers) == 0 {
		return 0, nil
	}
	clients, err := c.quick(ctx, "SHOW CLIENTS")
	if err != nil {
		return 0, err
	}
	for _, client := range clients {
		if !pointers[client["ptr"]] {
			continue
		}
		id, err := strconv.ParseUint(client["id"], 10, 64)
		if err != nil {
			return ended, fmt.Errorf("understand the client's id %q: %w", client["id"], err)
		}
		_, err = c.quick(ctx, fmt.Sprintf("KILL_CLIENT %d", id))
		if err != nil && sql.Error(err) == nil { // one that has ended by itself is unknown
			return ended, err
		}
		ended++
	}
	return ended, nil
}

// awaitNoLogin waits until PgBouncer is not connecting to a server, for patience at most: PAUSE and RECONNECT break
// that off, and PgBouncer takes it for a failure of the server, which it does not ask again for a while.
func (c console) awaitNoLogin(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		pools, err := c.quick(ctx, "SHOW POOLS")
		if err == nil && !slices.ContainsFunc(pools, func(p map[string]string) bool {
			return p["sv_login"] != "" && p["sv_login"] != "0"
		}) || !pause.For(ctx, 2*time.Millisecond) {
			return
		}
	}
}
