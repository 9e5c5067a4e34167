package etcdcluster

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestACopiedFolderHasTheSameFiles: contents, sizes and modes, without the
// files in reserve, and without room for the zeros.
func TestACopiedFolderHasTheSameFiles(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	log := make([]byte, 8<<20+17)
	copy(log, "records")
	log[len(log)-1], log[3<<20] = 1, 2
	files := map[string][]byte{
		"member/wal/0-0.wal": log,
		"member/wal/empty":   nil,
		"member/snap/db":     []byte("pages"),
		"member/snap/zeros":  make([]byte, block*3),
	}
	for name, content := range files {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "member/wal/1.tmp"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copyFolder(to, from); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		got, err := os.ReadFile(filepath.Join(to, name))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes for %d (error %v), or others", name, len(got), len(content), err)
		}
		info, err := os.Stat(filepath.Join(to, name))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v (error %v)", name, info.Mode(), err)
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Blocks*512 > 1<<20 {
			t.Errorf("%s takes %d bytes of the disk", name, s.Blocks*512)
		}
	}
	if _, err := os.Stat(filepath.Join(to, "member/wal/1.tmp")); !os.IsNotExist(err) {
		t.Errorf("a file in reserve was copied (error %v)", err)
	}
	if err := copyFolder(to, from); err == nil {
		t.Error("a copy went over another one")
	}
}
