package warehouse_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/mem"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/coordinator/history/warehouse/warehousetest"
	"github.com/musterd/muster/test/postgres"
)

var (
	crashRounds = flag.Int("crash.rounds", 4, "rounds of the crash tests; every second one kills the database")
	crashSeed   = flag.Uint64("crash.seed", 1, "draws batches and instants of kills")
)

// writerDSN is set in the process that TestAKilledWriterLosesNothing starts and kills.
const writerDSN = "MUSTER_TEST_WRITER_DSN"

// drawn are the batches of a seed, the same ones in each process.
func drawn(seed uint64) *warehousetest.Random {
	return warehousetest.NewRandom(rand.New(rand.NewPCG(seed, 83)))
}

// follow writes the batches of a seed from the position of a history on, until the
// context ends or an error that is not of the database's absence.
func follow(ctx context.Context, w *warehouse.Warehouse, seed uint64) error {
	at, err := w.Position(ctx)
	if err != nil {
		return err
	}
	random := drawn(seed)
	for ctx.Err() == nil {
		b := random.Batch()
		if b.Upto <= at.Revision {
			continue // written before the crash
		}
		if err := w.Write(ctx, b); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// judge compares a history with the oracle at its position, and returns the position.
func judge(t *testing.T, w *warehouse.Warehouse, seed uint64) history.Position {
	t.Helper()
	p, err := w.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	oracle, random := mem.New(), drawn(seed)
	for random.Position < p.Revision {
		b := random.Batch()
		if err := oracle.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if random.Position != p.Revision {
		t.Fatalf("the history stands at %d, between two batches", p.Revision)
	}
	if diff := warehousetest.Diff(t, oracle, w); diff != "" {
		t.Fatalf("at revision %d the rows differ from the oracle's (-want +got):\n%s", p.Revision, diff)
	}
	return p
}

// The database and the writer are killed by kill -9 at drawn instants, while batches
// are written. After each kill the rows are those of the oracle at the position.
func TestKillsLeaveTheRowsOfThePosition(t *testing.T) {
	if dsn := os.Getenv(writerDSN); dsn != "" { // the process that is killed
		write(t, dsn)
		return
	}
	server := postgres.Start(t)
	dsn := server.Database(t)
	random := rand.New(rand.NewPCG(*crashSeed, 1))
	var last history.Position
	for round := 0; round < *crashRounds || last.Revision == 0 && round < *crashRounds+10; round++ {
		after := time.Duration(random.IntN(300)) * time.Millisecond
		if round >= *crashRounds { // a busy machine has written nothing yet
			after = 3 * time.Second
		}
		if round%2 == 0 {
			killServer(t, server, dsn, after)
		} else {
			killWriter(t, dsn, after)
		}
		w := warehousetest.Open(t, dsn)
		p := judge(t, w, *crashSeed)
		if p.Revision < last.Revision {
			t.Fatalf("round %d: the history went back from %d to %d", round, last.Revision, p.Revision)
		}
		last = p
	}
	if last.Revision == 0 {
		t.Error("no batch was written")
	}
	t.Logf("%d rounds, %d revisions", *crashRounds, last.Revision)
}

func killServer(t *testing.T, server *postgres.Server, dsn string, after time.Duration) {
	t.Helper()
	w := warehousetest.Open(t, dsn)
	ended := make(chan error, 1)
	go func() { ended <- follow(t.Context(), w, *crashSeed) }()
	time.Sleep(after) // the instant of the kill is drawn
	server.Kill()
	select {
	case err := <-ended:
		if err == nil {
			t.Fatal("the writer ended without an error")
		}
	case <-time.After(time.Minute):
		t.Fatal("the writer does not end without its database")
	}
	server.Restart(t)
}

// killWriter starts this test in another process, and kills that once it has opened
// the history and the drawn time has passed.
func killWriter(t *testing.T, dsn string, after time.Duration) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", "^TestKillsLeaveTheRowsOfThePosition$", "-crash.seed", strconv.FormatUint(*crashSeed, 10))
	cmd.Env = append(os.Environ(), writerDSN+"="+dsn)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatalf("the writer's first word: %v", err)
	}
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatalf("the writer ended by itself: %v", err)
	}
}

// write is the process that is killed.
func write(t *testing.T, dsn string) {
	w, err := warehouse.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("open")
	t.Fatal(follow(t.Context(), w, *crashSeed))
}

// The same for SQLite, whose database is the writer's process.
func TestKillsOfAWriterLeaveTheRowsOfAFile(t *testing.T) {
	dsn := sqliteDSN(t)
	random := rand.New(rand.NewPCG(*crashSeed, 2))
	for range *crashRounds {
		killWriter(t, dsn, time.Duration(random.IntN(300))*time.Millisecond)
		judge(t, warehousetest.Open(t, dsn), *crashSeed)
	}
}
