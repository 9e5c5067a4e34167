package logfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterd/muster/coordinator/decisions"
)

const suffix = ".jsonl"

// Files lists a directory's files in the order in which they were written; of a
// file it lists that.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path) // sorted by name, see series
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), suffix) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil
}

// Replay gives every line of these files, or of the files of these directories,
// to a checker.
func Replay(c *decisions.Checker, paths ...string) error {
	for _, path := range paths {
		files, err := Files(path)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("%s: there is no file *%s in it", path, suffix)
		}
		for _, name := range files {
			if err := replay(c, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func replay(c *decisions.Checker, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	c.File(name)
	for r := bufio.NewReaderSize(f, 1<<20); ; {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			c.Line(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
