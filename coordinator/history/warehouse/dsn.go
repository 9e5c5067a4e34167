package warehouse

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// sqliteScheme begins the DSN of a file.
const sqliteScheme = "sqlite:"

// errDSN is the refusal of a DSN. The texts of parsers quote what they have read, and
// a DSN has a password.
var errDSN = errors.New(`the DSN of the history is not valid: want "postgres://user:password@host:port/database?sslmode=verify-full", "host=… dbname=…" or "sqlite:/path/of/history.db" (the text is not shown, as it may have a password)`)

// connect makes the pool of a DSN; no connection is made yet.
func connect(dsn string) (*Warehouse, error) {
	w := &Warehouse{}
	var err error
	if path, found := strings.CutPrefix(dsn, sqliteScheme); found {
		err = w.connectSQLite(path)
	} else {
		err = w.connectPostgres(dsn)
	}
	if err != nil {
		return nil, err
	}
	w.db.SetMaxOpenConns(MaxConnections)
	w.db.SetMaxIdleConns(MaxConnections)
	w.db.SetConnMaxIdleTime(time.Minute)
	w.db.SetConnMaxLifetime(30 * time.Minute)
	return w, nil
}

func (w *Warehouse) connectPostgres(dsn string) error {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") && !strings.Contains(dsn, "=") {
		return errDSN
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return errDSN
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = ConnectTimeout
	}
	for name, value := range map[string]string{
		"statement_timeout": milliseconds(StatementTimeout), "lock_timeout": milliseconds(LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(WriteTimeout), "application_name": "muster-history", "TimeZone": "UTC",
	} {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	w.dialect, w.db = Postgres, stdlib.OpenDB(*config)
	w.where = fmt.Sprintf("%v %s at %s", Postgres, config.Database, config.Host)
	return nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func (w *Warehouse) connectSQLite(path string) error {
	if path == "" || strings.ContainsAny(path, "?\x00") {
		return errDSN
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would make a file that all may read
	if err != nil {
		return fmt.Errorf("open the history: %w", err)
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := registerDecimals(); err != nil {
		return err
	}
	query := url.Values{
		"_txlock": {"immediate"}, // a transaction that reads the position must write behind it
		"_pragma": {
			"busy_timeout(" + milliseconds(LockTimeout) + ")", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)",
			"temp_store(MEMORY)", "cache_size(-32768)",
		},
	}
	w.db, err = sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String())
	w.dialect, w.path, w.where = SQLite, path, fmt.Sprintf("%v %s", SQLite, path)
	return err
}
