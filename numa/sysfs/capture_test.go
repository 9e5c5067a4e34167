package sysfs

import (
	"archive/tar"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// captureDir finds the captures beside the project, or skips the test.
func captureDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			tb.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
	captures := filepath.Join(dir, "..", "shared", "data", "sysfs")
	if _, err := os.Stat(captures); err != nil {
		tb.Skip("no reference material: ../shared/data/sysfs is absent, the real captures are not checked")
	}
	return captures
}

// wanted are the files that this package may ask for: a whole capture holds
// ten thousand more, and unpacking is slow.
var wanted = regexp.MustCompile(`^proc/(meminfo|cmdline|stat|version|mounts|self/(status|cgroup|cpuset|mountinfo|mounts)|sys/.*)$` +
	`|^sys/devices/system/cpu/(possible|present|online|offline|isolated)$` +
	`|^sys/devices/system/cpu/cpu\d+/(online|node\d+|cpu_capacity|topology/(\w+_id|(core_cpus|thread_siblings|package_cpus|core_siblings)(_list)?)` +
	`|cache/index(\d+/level|0/size|[2-9]/(type|shared_cpu_\w+))|cpufreq|cpufreq/cpuinfo_max_freq)$|^sys/devices/system/cpu/cpufreq/policy\d+/cpuinfo_max_freq$` +
	`|^sys/devices/cpu_\w+/cpus$` +
	`|^sys/devices/system/node/(online|has_cpu|has_memory|node\d+/(cpulist|cpumap|meminfo|distance|hugepages/.*/nr_hugepages))$` +
	`|^sys/kernel/mm/hugepages/.*/nr_hugepages$|^sys/bus/pci/devices/|/numa_node$|cpuset.*/(cpuset\.)?(effective_)?(cpus|mems)$`)

// extract unpacks a capture into a temporary folder and returns the folder
// that holds sys/.
func extract(tb testing.TB, archive string) string {
	tb.Helper()
	f, err := os.Open(archive)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var unpacked io.Reader
	unpacked = bzip2.NewReader(f)
	if strings.HasSuffix(archive, ".gz") {
		if unpacked, err = gzip.NewReader(f); err != nil {
			tb.Fatal(err)
		}
	}
	temp := tb.TempDir()
	entries := tar.NewReader(unpacked)
	for {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return temp
		}
		if err != nil {
			tb.Fatal(err)
		}
		name := belowRoot(path.Clean(h.Name))
		if name == "" || !wanted.MatchString(name) {
			continue
		}
		if !filepath.IsLocal(name) {
			tb.Fatalf("%s leads out of the archive", h.Name)
		}
		to := filepath.Join(temp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			tb.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(to, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, to)
		case tar.TypeReg:
			var data []byte
			if data, err = io.ReadAll(entries); err == nil {
				err = os.WriteFile(to, data, 0o644)
			}
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// belowRoot cuts the folders above sys/ and proc/.
func belowRoot(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part == "sys" || part == "proc" {
			return strings.Join(parts[i:], "/")
		}
	}
	return ""
}
