package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
)

// Host is a host's identity. A field is "" where the tree does not report it.
type Host struct {
	Hostname string
	BootID   string // the kernel's random UUID of this boot, in lower case
	Kernel   string // its release, e.g. "6.1.0-28-amd64"
}

// ReadHost reads the host's identity from proc/sys/kernel, with a Warning for
// each field that is absent or malformed. It blocks on the file system alone.
func ReadHost(fsys fs.FS) (Host, []Warning) {
	r := newReader(fsys)
	h := Host{
		Hostname: r.word("proc/sys/kernel/hostname"),
		BootID:   r.word("proc/sys/kernel/random/boot_id"),
		Kernel:   r.kernel(),
	}
	if h.BootID != "" && !isUUID(h.BootID) {
		r.warn("proc/sys/kernel/random/boot_id", "%.40q is not a UUID; unknown", h.BootID)
		h.BootID = ""
	}
	return h, r.faults()
}

// kernel reads the release, from the version's text where a captured tree has
// that alone: "Linux version 6.1.0-28-amd64 (…) …" (proc_version(5)).
func (r *reader) kernel() string {
	const release = "proc/sys/kernel/osrelease"
	if _, err := r.text(release); absent(err) {
		text, err := r.text("proc/version")
		fields := strings.Fields(text)
		if err == nil && len(fields) > 2 && fields[0] == "Linux" && fields[1] == "version" && checkWord(fields[2]) == nil {
			return fields[2]
		}
	}
	return r.word(release)
}

// word reads one short printable word, "" with a warning where there is none.
func (r *reader) word(path string) string {
	text, err := r.text(path)
	if err == nil {
		err = checkWord(text)
	}
	if err != nil {
		r.warn(path, "%v; unknown", err)
		return ""
	}
	return text
}

// checkWord refuses text that could not stand in a name or on a terminal.
func checkWord(text string) error {
	const most = 255 // more than the 64 of struct utsname
	switch {
	case text == "":
		return errors.New("empty")
	case len(text) > most:
		return fmt.Errorf("%d bytes are more than %d", len(text), most)
	case strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) || unicode.IsSpace(c) }):
		return fmt.Errorf("%.40q holds spaces or characters that cannot be printed", text)
	}
	return nil
}

// isUUID reports whether text is 8-4-4-4-12 hexadecimal digits in lower case.
func isUUID(text string) bool {
	parts := strings.Split(text, "-")
	if len(parts) != 5 {
		return false
	}
	for i, want := range [...]int{8, 4, 4, 4, 12} {
		if len(parts[i]) != want || !hexadecimal(parts[i]) {
			return false
		}
	}
	return true
}

func hexadecimal(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
