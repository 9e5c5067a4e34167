// Package warehouse writes the history into PostgreSQL 15 or later, or into SQLite,
// and reads it back. It decides how facts become rows of SQL tables: the tables of
// the specification's storage design with resources as one row per slot
// (docs/history.md names every table). It makes no facts: the projector brings
// batches of rows, and the usage packages compute sums.
//
// A batch and the position behind it are one SQL transaction, so every change of the
// store is in the history once, whatever crashes. There is one writer: Write refuses
// a batch that does not follow the position.
package warehouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// The bounds of every call.
const (
	// ConnectTimeout bounds the making of one connection, where the DSN gives none.
	ConnectTimeout = 5 * time.Second
	// StatementTimeout bounds one statement, where the DSN gives none.
	StatementTimeout = 60 * time.Second
	// LockTimeout bounds the wait for a lock, where the DSN gives none.
	LockTimeout = 10 * time.Second
	// WriteTimeout bounds one Write.
	WriteTimeout = 2 * time.Minute
	// MaxConnections bounds the pool; an idle connection ends after a minute, each
	// connection after half an hour.
	MaxConnections = 8
	// MaxMark is the most bytes of the mark of a position.
	MaxMark = 4096
)

// Dialect is the language of a database.
type Dialect int

// The dialects.
const (
	Postgres Dialect = iota + 1
	SQLite
)

// String is the name of the database.
func (d Dialect) String() string {
	if d == Postgres {
		return "PostgreSQL"
	}
	return "SQLite"
}

// Warehouse is an open history. Its methods may be called from any goroutine, and
// block on the database until their context ends or a bound above.
type Warehouse struct {
	db      *sql.DB
	dialect Dialect
	where   string
	path    string // SQLite's file

	mu     sync.Mutex
	slots  map[resource.Name]bool // those that have a row
	months map[string]bool        // the partitions that exist
}

// Open opens a history and brings its tables to this program's version. dsn is a URL
// or a list of settings for PostgreSQL ("postgres://user:secret@host/database?…",
// "host=… dbname=…"), or "sqlite:" and the path of a file. Two coordinators may open
// the same history at the same time. No error contains the DSN.
func Open(ctx context.Context, dsn string) (*Warehouse, error) {
	w, err := connect(dsn)
	if err != nil {
		return nil, err
	}
	if err := w.prepareAlone(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the history in %s: %w", w.where, err), w.Close())
	}
	return w, nil
}

// prepareAlone prepares the tables while no other program of this host does so in the
// same file; PostgreSQL has locks for that.
func (w *Warehouse) prepareAlone(ctx context.Context) error {
	if w.dialect == Postgres {
		return w.prepare(ctx)
	}
	lock, err := os.OpenFile(w.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // the lock ends with the file
	for {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return w.prepare(ctx)
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock %s.lock: %w", w.path, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another program prepares the file: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// prepare brings tables, indexes, months and slot types to their present state.
func (w *Warehouse) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{w.migrate, w.MakeIndexes, w.prepareMonths, w.seedSlots} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends all connections.
func (w *Warehouse) Close() error { return w.db.Close() }

// SQL is the pool, for questions in the words of Dialect.
func (w *Warehouse) SQL() *sql.DB { return w.db }

// Dialect is the language of the database.
func (w *Warehouse) Dialect() Dialect { return w.dialect }

// Where names the database without any secret, for logs: "PostgreSQL muster at
// db.example.com", "SQLite /var/lib/muster/history.db".
func (w *Warehouse) Where() string { return w.where }

// Position is how far the history is.
func (w *Warehouse) Position(ctx context.Context) (history.Position, error) {
	p, err := positionOf(ctx, w.db, "")
	if err != nil {
		return history.Position{}, fmt.Errorf("read the position of the history: %w", err)
	}
	return p, nil
}

// queryer is a pool or a transaction.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func positionOf(ctx context.Context, q queryer, lock string) (p history.Position, err error) {
	err = q.QueryRowContext(ctx, "SELECT revision, mark FROM history_position WHERE id = 1"+lock).Scan(&p.Revision, &p.Mark)
	return p, err
}
