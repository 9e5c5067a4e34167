package warehouse

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

//go:embed indexes/postgres.sql
var indexesPostgres string

//go:embed indexes/sqlite.sql
var indexesSQLite string

// migrate brings the tables to this program's version, under a lock of the database.
func (w *Warehouse) migrate(ctx context.Context) error {
	dialect, folder := goose.DialectPostgres, "migrations/postgres"
	options := []goose.ProviderOption{goose.WithTableName("history_schema"), goose.WithDisableGlobalRegistry(true)}
	if w.dialect == SQLite {
		dialect, folder = goose.DialectSQLite3, "migrations/sqlite"
	} else {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60)) // a try each second
		if err != nil {
			return err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(dialect, w.db, files, options...)
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("bring the tables to this version: %w", err)
	}
	return nil
}

// indexes are the statements of the secondary indexes.
func (w *Warehouse) indexes() []string {
	text := indexesPostgres
	if w.dialect == SQLite {
		text = indexesSQLite
	}
	var statements []string
	for statement := range strings.SplitSeq(text, ";\n") {
		lines := strings.Split(statement, "\n")
		kept := lines[:0]
		for _, line := range lines {
			if line != "" && !strings.HasPrefix(line, "--") {
				kept = append(kept, line)
			}
		}
		if len(kept) > 0 {
			statements = append(statements, strings.Join(kept, "\n"))
		}
	}
	return statements
}

// MakeIndexes makes the secondary indexes that are absent. After DropIndexes it takes
// as long as the database needs to read its tables, without the statements' time-out.
func (w *Warehouse) MakeIndexes(ctx context.Context) error {
	return w.alone(ctx, func(conn *sql.Conn) error {
		for _, statement := range w.indexes() {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("make an index (%s): %w", statement, err)
			}
		}
		return nil
	})
}

// DropIndexes drops the secondary indexes, for the time of a rebuild: rows are written
// several times faster without them. MakeIndexes or the next Open makes them again.
func (w *Warehouse) DropIndexes(ctx context.Context) error {
	return w.alone(ctx, func(conn *sql.Conn) error {
		for _, statement := range w.indexes() {
			name, _, _ := strings.Cut(strings.TrimPrefix(statement, "CREATE INDEX IF NOT EXISTS "), " ")
			if _, err := conn.ExecContext(ctx, "DROP INDEX IF EXISTS "+name); err != nil {
				return fmt.Errorf("drop index %s: %w", name, err)
			}
		}
		return nil
	})
}

// schemaLock is the advisory lock of PostgreSQL for changes of the schema that
// IF NOT EXISTS alone does not make safe beside another coordinator's.
const schemaLock = 0x6d757374

// alone runs changes of the schema on one connection, without the statements'
// time-out, while no other coordinator changes the schema.
func (w *Warehouse) alone(ctx context.Context, change func(*sql.Conn) error) error {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if w.dialect == SQLite {
		return change(conn) // each statement is alone
	}
	if _, err := conn.ExecContext(ctx, "SET statement_timeout = 0"); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", schemaLock); err != nil {
		return err
	}
	err = change(conn)
	if ctx.Err() != nil {
		return errors.Join(err, ctx.Err(), conn.Raw(func(any) error { return driver.ErrBadConn })) // the lock ends with the connection
	}
	for _, undo := range []string{"SELECT pg_advisory_unlock_all()", "RESET statement_timeout"} {
		_, failed := conn.ExecContext(ctx, undo)
		err = errors.Join(err, failed)
	}
	return err
}
