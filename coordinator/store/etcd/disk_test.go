package etcd_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/etcd"
)

// ballast is a file that takes up the space that etcd has not yet set aside.
const ballast = "ballast"

// smallDisk mounts a file system of its own.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		t.Skipf("not permitted here: mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill is the child: it opens a store, takes up the rest of the disk and writes
// until it dies, naming each write that was acknowledged.
func fill(dir string) {
	ctx := context.Background()
	s, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: dir, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	value := bytes.Repeat([]byte("x"), 1<<20)
	for i := 0; ; i++ {
		if i == 3 {
			takeRest(filepath.Join(filepath.Dir(dir), ballast))
		}
		_, err := s.Txn(ctx, record.Txn{Then: []record.Op{record.Put(fmt.Sprintf("/registry/tx/%06d", i), value)}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		fmt.Println("acknowledged", i+1)
	}
}

func takeRest(path string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for block := make([]byte, 64<<10); ; {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

// childUntilItDies runs fill in another process. It returns how many writes
// were acknowledged, and the process's report of its end.
func childUntilItDies(t *testing.T, dir string) (acknowledged int, said string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MUSTER_TEST_FILL="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if n, ok := strings.CutPrefix(lines.Text(), "acknowledged "); ok {
			acknowledged, _ = strconv.Atoi(n)
		}
	}
	_ = cmd.Wait() // it has closed its output: it is dead or dying
	return acknowledged, stderr.String()
}
