package warehouse_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/test/postgres"
)

func TestNoErrorHasTheSecretOfADSN(t *testing.T) {
	const secret = "s3cret-of-the-database"
	valid := postgres.Database(t)
	for name, dsn := range map[string]string{
		"a port that is no number":     "postgres://muster:" + secret + "@db:port/history",
		"a wrong escape":               "postgres://muster:%zz" + secret + "@db/history",
		"an unknown setting's value":   "postgres://muster:" + secret + "@db/history?sslmode=" + secret,
		"settings without a value":     "host=db password=" + secret + " sslmode",
		"a certificate that is absent": "postgres://muster:" + secret + "@db/history?sslmode=verify-full&sslrootcert=/absent/" + secret,
		"nothing of a DSN":             secret,
		"no text":                      "",
		"a host that is absent":        "postgres://muster:" + secret + "@127.0.0.1:1/history?connect_timeout=2",
		"a user that is absent":        strings.Replace(valid, "user=muster", "user=absent&password="+secret, 1),
		"a database that is absent":    strings.Replace(valid, "/test", "/absent", 1) + "&password=" + secret,
		"a folder that is absent":      "sqlite:/absent/history.db",
		"SQLite's own settings":        "sqlite:history.db?_pragma=" + secret,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			w, err := warehouse.Open(ctx, dsn)
			if err == nil {
				_ = w.Close()
				t.Fatal("the DSN was taken")
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error has the secret: %v", err)
			}
		})
	}
}

func TestTheNameOfADatabaseHasNoSecret(t *testing.T) {
	dsn := postgres.Database(t) + "&password=s3cret"
	w, err := warehouse.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if where := w.Where(); strings.Contains(where, "s3cret") || !strings.Contains(where, "PostgreSQL test") {
		t.Errorf("the database is called %q", where)
	}
	for setting, want := range map[string]string{"statement_timeout": "1min", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "2min"} {
		var got string
		if err := w.SQL().QueryRowContext(t.Context(), "SELECT current_setting('"+setting+"')").Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", setting, got, err, want)
		}
	}
}

func TestTheFileOfAHistoryIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	w, err := warehouse.Open(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, file := range []string{path, path + "-wal"} {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", file, info.Mode(), err)
		}
	}
}
