package take

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/postgres/sql"
)

// ErrPromoted says that the standby which was copied has become a primary
// meanwhile. PostgreSQL gives no backup then (do_pg_backup_stop in xlog.c): it is to be begun anew.
var ErrPromoted = errors.New("the standby was promoted during the backup")

// ErrDamaged says that a server finds its own data damaged, or can't read it: its words name the file, and the block
// where that is known. Another instance may have all of it.
var ErrDamaged = errors.New("its data is damaged")

// stream is a replication connection on which a base backup is taken
// (PostgreSQL 17 documentation, 55.4 Streaming Replication Protocol).
type stream struct {
	conn *pgconn.PgConn
	stop func() bool
}

// openStream connects. When ctx ends, the connection does: whatever waits on it fails.
func openStream(ctx context.Context, config *pgconn.Config) (*stream, error) {
	config = config.Copy()
	config.RuntimeParams["replication"] = "true"
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect for replication: %w", err)
	}
	// One watcher for all: ReceiveMessage would make one for each message of 32 KiB.
	stop := context.AfterFunc(ctx, func() { _ = conn.Conn().SetDeadline(time.Unix(1, 0)) })
	return &stream{conn, stop}, nil
}

func (s *stream) close() {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // what was wanted is here, or an error is
}

// version is that of the server, e.g. "17.6".
func (s *stream) version() string {
	version, _, _ := strings.Cut(s.conn.ParameterStatus("server_version"), " ")
	return version
}

// identity is the system identifier of the server.
func (s *stream) identity() (string, error) {
	rows, err := s.query("IDENTIFY_SYSTEM")
	if err != nil {
		return "", fmt.Errorf("ask for the system identifier: %w", err)
	}
	return rows[0][0], nil
}

// query runs a command that has one row as its result.
func (s *stream) query(command string) ([][]string, error) {
	if err := s.send(command); err != nil {
		return nil, err
	}
	rows, err := s.result()
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) == 0 {
		return nil, fmt.Errorf("%s gives %d rows", command, len(rows))
	}
	return rows, s.ready()
}

// uploadManifest gives the server the manifest that an incremental backup is
// the change from (PostgreSQL 17).
func (s *stream) uploadManifest(manifest io.Reader) error {
	if _, err := s.conn.CopyFrom(context.Background(), manifest, "UPLOAD_MANIFEST"); err != nil {
		return fmt.Errorf("give the server the manifest of the parent: %w", err)
	}
	return nil
}

func (s *stream) send(command string) error {
	s.conn.Frontend().SendQuery(&pgproto3.Query{String: command})
	return s.conn.Frontend().Flush()
}

// next is the next message that is neither a notice nor an error. A notice of damage is one: the server would go on to
// the end of all data, and only then say that there is no backup, and no more where.
func (s *stream) next() (pgproto3.BackendMessage, error) {
	for {
		message, err := s.conn.ReceiveMessage(context.Background())
		if err != nil {
			return nil, named(err)
		}
		switch m := message.(type) {
		case *pgproto3.ErrorResponse:
			return nil, named(pgconn.ErrorResponseToPgError(m))
		case *pgproto3.NoticeResponse:
			if damage(m.Message) {
				return nil, fmt.Errorf("%w: %s", ErrDamaged, m.Message)
			}
		case *pgproto3.ParameterStatus:
		default:
			return message, nil
		}
	}
}

// named gives the errors names that who called can tell apart. The code says only
// that the server is not in the state for it (55000); our servers speak English (lc_messages).
func named(err error) error {
	own := sql.Error(err)
	switch {
	case own == nil:
		return err
	case own.Code == "55000" && strings.Contains(own.Message, "was promoted"):
		return fmt.Errorf("%w: %w", ErrPromoted, err)
	case damageCodes[own.Code]:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// damageCodes are those of errors by which a server can't read its own files (PostgreSQL 17 documentation, appendix A):
// data_corrupted, index_corrupted and io_error.
var damageCodes = map[string]bool{"XX001": true, "XX002": true, "58030": true}

// damage says that a notice is of a page with a wrong checksum (verify_page_checksum in basebackup.c, the same in 15 to
// 18). It has no code of its own.
func damage(notice string) bool {
	return strings.HasPrefix(notice, "checksum verification failed in file ")
}

// result is one result set, NULL as "".
func (s *stream) result() (rows [][]string, err error) {
	for {
		message, err := s.next()
		if err != nil {
			return nil, err
		}
		switch m := message.(type) {
		case *pgproto3.RowDescription:
		case *pgproto3.DataRow:
			row := make([]string, len(m.Values))
			for i, value := range m.Values {
				row[i] = string(value)
			}
			rows = append(rows, row)
		case *pgproto3.CommandComplete:
			return rows, nil
		default:
			return nil, fmt.Errorf("the server sends %T where a result was expected", message)
		}
	}
}

// ready reads on until the server takes the next command.
func (s *stream) ready() error {
	for {
		message, err := s.next()
		if err != nil {
			return err
		}
		if _, ok := message.(*pgproto3.ReadyForQuery); ok {
			return nil
		}
	}
}

// sink takes what a base backup consists of, in this order. What it gets is
// overwritten after it returns.
type sink interface {
	// archive begins a tar file: "base.tar", or that of a tablespace, e.g. "16400.tar".
	archive(name, location string) error
	// manifest begins the manifest, of which the rest is then.
	manifest() error
	data(content []byte) error
}

// copyOut gives the tar files and the manifest to the sink. Each message says by its
// first byte what it is (PostgreSQL 17 documentation, 55.4, BASE_BACKUP; the same in 15 to 18).
func (s *stream) copyOut(to sink) error {
	message, err := s.next()
	if err != nil {
		return err
	}
	if _, ok := message.(*pgproto3.CopyOutResponse); !ok {
		return fmt.Errorf("the server sends %T where the data was expected", message)
	}
	for {
		message, err := s.next()
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *pgproto3.CopyData:
			if err := chunk(m.Data, to); err != nil {
				return err
			}
		case *pgproto3.CopyDone:
			return nil
		default:
			return fmt.Errorf("the server sends %T among the data", message)
		}
	}
}

func chunk(message []byte, to sink) error {
	if len(message) == 0 {
		return io.ErrUnexpectedEOF
	}
	content := message[1:]
	switch message[0] {
	case 'n':
		fields := strings.Split(string(content), "\x00")
		if len(fields) != 3 || !format.TarName.MatchString(fields[0]) {
			return fmt.Errorf("the server begins an archive %q", content)
		}
		return to.archive(fields[0], fields[1])
	case 'd':
		return to.data(content)
	case 'm':
		return to.manifest()
	case 'p': // how far it is: what has come tells that better
		if len(content) != binary.Size(uint64(0)) {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	return fmt.Errorf("the server sends a message of type %q, which is not known", message[0])
}
