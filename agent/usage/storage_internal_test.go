package usage

import (
	"path/filepath"
	"testing"

	"github.com/musterd/muster/resource"
)

func TestStorageIsTheFileSystemLessATenth(t *testing.T) {
	for name, c := range map[string]struct {
		total uint64
		want  resource.Bytes
	}{
		"nothing":                         {0, 0},
		"less than a MiB":                 {1 << 20, 0},
		"ten MiB":                         {10 << 20, 9 << 20},
		"a part of a MiB is left out":     {11 << 20, 9 << 20},
		"a tebibyte":                      {1 << 40, 943718 << 20},
		"more than a resource may have":   {1 << 63, resource.MaxCount},
		"as much as a number of a kernel": {1<<64 - 1, resource.MaxCount},
	} {
		if got := storageOf(c.total); got != c.want {
			t.Errorf("%s: of %d bytes %d are handed out, want %d", name, c.total, got, c.want)
		}
	}
}

func TestStorageOfAFolderThatIsNotMadeYet(t *testing.T) {
	dir := t.TempDir()
	now, err := Storage(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if later, err := Storage(t.Context(), filepath.Join(dir, "a", "b")); err != nil || later != now {
		t.Errorf("%d bytes, %v; want those of the folder above, %d", later, err, now)
	}
}
