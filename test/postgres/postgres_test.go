package postgres_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterd/muster/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestEachDatabaseIsNewAndOfARecentRelease(t *testing.T) {
	for range 2 {
		conn := connect(t, postgres.Database(t))
		if _, err := conn.Exec(t.Context(), "CREATE TABLE t (a int)"); err != nil {
			t.Error(err)
		}
		var release int
		if err := conn.QueryRow(t.Context(), "SELECT current_setting('server_version_num')::int / 10000").Scan(&release); err != nil || release < 15 {
			t.Errorf("release %d (%v), want 15 or later", release, err)
		}
	}
}

func TestAKilledServerComesBackWithWhatItHadCommitted(t *testing.T) {
	s := postgres.Start(t)
	dsn := s.Database(t)
	conn := connect(t, dsn)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE t AS SELECT 7 AS a"); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a connection outlives the server")
	}
	s.Restart(t)
	var a int
	if err := connect(t, dsn).QueryRow(t.Context(), "SELECT a FROM t").Scan(&a); err != nil || a != 7 {
		t.Errorf("read %d, %v; want 7", a, err)
	}
}
