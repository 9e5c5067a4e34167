package canary

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mayHold are the names of the files that hold secrets by their purpose; nobody but
// their owner reads them.
var mayHold = []string{
	"token", "cluster-token", "admin-token", "bootstrap-token", "serf-rpc-token", "party.pem", "key.pem", "keyring.json", "known.json", "authority.pem",
}

// Files looks for secrets in all files below a folder, and lists those in files that may
// hold none, and files with secrets that others may read. It leaves out etcd's own
// folder, which holds the content of the store. seen counts the files.
func Files(dir string, known ...string) (found []string, seen int, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/member/") {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it has been removed meanwhile
			}
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen++
		switch all := Find(string(raw), known...); {
		case slices.Contains(mayHold, d.Name()) || strings.HasSuffix(d.Name(), "-key.pem"): // of etcd's clients
			if info.Mode().Perm()&0o077 != 0 {
				found = append(found, fmt.Sprintf("%s may hold secrets, and has the mode %s", path, info.Mode()))
			}
		default:
			for _, what := range all {
				found = append(found, fmt.Sprintf("%s has %s", strings.TrimPrefix(path, dir), what))
			}
		}
		return nil
	})
	return found, seen, err
}

// Reporter is a test, as far as Judge needs one.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Judge fails a test for each secret in a text, such as the log of a program.
func Judge(t Reporter, where, text string, known ...string) {
	t.Helper()
	for _, what := range Find(text, known...) {
		t.Errorf("%s has %s", where, what)
	}
}

// JudgeFiles fails a test for each secret in a file below a folder that may hold none.
func JudgeFiles(t Reporter, dir string, known ...string) {
	t.Helper()
	found, seen, err := Files(dir, known...)
	if err != nil || seen == 0 {
		t.Errorf("%d files below %s: %v", seen, dir, err)
	}
	for _, what := range found {
		t.Errorf("%s", what)
	}
}
