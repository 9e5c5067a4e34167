package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/coordinator/store/storetest"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("MUSTER_TEST_LEAD_IN"); dir != "" {
		lead(dir)
		return
	}
	if dir := os.Getenv("MUSTER_TEST_FILL"); dir != "" {
		fill(dir)
		return
	}
	os.Exit(m.Run())
}

// lead owns a store, leads with a long lease, reports that and waits to be
// killed.
func lead(dir string) {
	ctx := context.Background()
	s, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: dir})
	if err == nil {
		_, err = s.Txn(ctx, record.Txn{Then: []record.Op{record.Put("/registry/kept", []byte("x"))}})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := store.NewCandidate(s, record.LeaderAddress{ID: "killed"}, time.Hour).Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("leading", l.Epoch)
	<-l.Done()
}

func TestKilledLeaderIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etcd")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MUSTER_TEST_LEAD_IN="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill := func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	defer kill()
	var epoch int64
	if _, err := fmt.Fscanf(out, "leading %d\n", &epoch); err != nil {
		t.Fatalf("the child does not lead: %v", err)
	}

	_, err = etcd.Embed(within(t), etcd.EmbedConfig{Dir: dir})
	if want := fmt.Sprintf("in use by process %d", cmd.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("second owner: %v, want %q", err, want)
	}

	kill()
	start := time.Now()
	s := openEmbedded(t, dir, false)
	defer func() { _ = s.Close() }()
	ready := time.Since(start)
	l, err := store.NewCandidate(s, record.LeaderAddress{ID: "next"}, time.Hour).Campaign(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("after kill -9: ready in %v, leading in %v", ready, time.Since(start))
	if int64(l.Epoch) <= epoch {
		t.Errorf("epoch %d after %d", l.Epoch, epoch)
	}
	if _, found, _, err := s.Get(within(t), "/registry/kept"); !found || err != nil {
		t.Errorf("what the killed process wrote: found %v, %v", found, err)
	}
}

func TestEmbeddedStartsAndStopsFast(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	var log journal
	start := time.Now()
	s, err := etcd.Embed(within(t), etcd.EmbedConfig{Dir: dir, Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	ready := time.Since(start)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v; want mode 0700", info, err)
	}
	if s.MaxTxnOps() != 2048 {
		t.Errorf("limit of %d operations", s.MaxTxnOps())
	}
	if listeners := ownListeners(t); len(listeners) > 0 {
		t.Errorf("the embedded server listens: %v", listeners)
	}
	start = time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	closed := time.Since(start)
	start = time.Now()
	s = openEmbedded(t, dir, false)
	again := time.Since(start)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("ready in %v, closed in %v, ready again in %v", ready, closed, again)
	if strings.Contains(log.String(), "level=ERROR") { // a slow disk may warn
		t.Errorf("a clean start and stop logs:\n%s", log.String())
	}
}

// ownListeners returns the kernel's lines of this process's listening sockets.
func ownListeners(t *testing.T) []string {
	t.Helper()
	mine := map[string]bool{}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil && strings.HasPrefix(link, "socket:[") {
			mine[strings.Trim(link, "socket:[]")] = true
		}
	}
	var found []string
	for table, columns := range map[string]struct {
		state, inode int
		listening    string
	}{"tcp": {3, 9, "0A"}, "tcp6": {3, 9, "0A"}, "unix": {3, 6, "00010000"}} {
		text, err := os.ReadFile("/proc/self/net/" + table)
		if err != nil {
			continue // a kernel without it
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > columns.inode && f[columns.state] == columns.listening && mine[f[columns.inode]] {
				found = append(found, table+" "+strings.TrimSpace(line))
			}
		}
	}
	return found
}

func TestEmbedRefusals(t *testing.T) {
	t.Parallel()
	foreign := t.TempDir()
	write(t, filepath.Join(foreign, "notes.txt"), "mine")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	corrupt := filepath.Join(t.TempDir(), "etcd")
	if err := openEmbedded(t, corrupt, true).Close(); err != nil {
		t.Fatal(err)
	}
	wals, _ := filepath.Glob(filepath.Join(corrupt, "member", "wal", "*.wal"))
	for _, wal := range wals {
		write(t, wal, strings.Repeat("garbage ", 1000))
	}
	cases := map[string]struct{ dir, want string }{
		"no folder":                    {"", "no data folder"},
		"a folder with other things":   {foreign, "notes.txt"},
		"a file in the folder's place": {file, file},
		"a corrupt log":                {corrupt, corrupt},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := etcd.Embed(within(t), etcd.EmbedConfig{Dir: c.dir})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEmbeddedTakesALargeUnit: a gang's record with all its index keys.
func TestEmbeddedTakesALargeUnit(t *testing.T) {
	t.Parallel()
	s := openEmbedded(t, filepath.Join(t.TempDir(), "etcd"), true)
	defer func() { _ = s.Close() }()
	txn := record.Txn{Then: []record.Op{record.Put("/registry/tx/t", make([]byte, 8<<20))}}
	for i := range 2000 {
		txn.If = append(txn.If, record.Absent(fmt.Sprint("/registry/nodes/", i, "/identity")))
		txn.Then = append(txn.Then, record.Put(fmt.Sprint("/registry/nodes/", i, "/tx/t"), []byte(`{"v":1}`)))
	}
	if r, err := s.Txn(within(t), txn); err != nil || !r.Succeeded {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCloseEndsWatches(t *testing.T) {
	t.Parallel()
	s := openEmbedded(t, filepath.Join(t.TempDir(), "etcd"), true)
	waiting := s.Watch(context.Background(), "/registry/", store.WatchOptions{From: 1})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if b, open := <-waiting; open {
		t.Errorf("watch after close: %+v", b)
	}
	if b, open := <-s.Watch(context.Background(), "/registry/", store.WatchOptions{From: 1}); open {
		t.Errorf("new watch after close: %+v", b)
	}
	if _, err := s.Txn(context.Background(), record.Txn{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("transaction after close: %v", err)
	}
}

func BenchmarkTxnCommit(b *testing.B) {
	storetest.BenchmarkTxnCommit(b, openEmbedded(b, filepath.Join(b.TempDir(), "etcd"), false))
}
