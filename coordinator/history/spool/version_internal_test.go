package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/history"
)

// TestAFrameOfAnotherVersionIsKept: a program that went back a version must not drop what
// the newer one has not brought to the database yet.
func TestAFrameOfAnotherVersionIsKept(t *testing.T) {
	dir := t.TempDir()
	s, _, err := Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Append(history.Batch{After: 1, Upto: 2}), s.Close()); err != nil {
		t.Fatal(err)
	}
	path := s.path(0)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before[headBytes] = version + 1
	binary.LittleEndian.PutUint32(before[4:], crc32.Checksum(before[headBytes:], castagnoli))
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	var other *VersionError
	if _, _, err := Open(dir, 0); !errors.As(err, &other) || other.Has != version+1 || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names version %d and %s", err, version+1, path)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the segment was changed, error %v", err)
	}
}
