package agent

import (
	"fmt"
	"hash/crc32"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// contact is an agent's last contact with the store, and the limit that
// coordinators may count on after it. A file keeps it over restarts of the
// process; a start of the machine voids it.
type contact struct {
	boot string // the kernel's boot id that the clock is of
	// at is the boot-time clock's reading when the latest message left that was
	// answered by a coordinator that had the store.
	at time.Time
	// after is the least time without contact after which coordinators may
	// count on a stop here; 0: on none.
	after time.Duration
	// stopped: assignments were taken away, and not all of them are back.
	stopped bool
}

// contactSize is the size of the file in bytes: one write, within one page.
const contactSize = 256

// contactHead names the format and its version.
const contactHead = "muster-contact 1"

// encode is one line of text with its checksum, padded.
func (c contact) encode() ([]byte, error) {
	body := fmt.Sprintf("%s %s %d %d %t", contactHead, url.PathEscape(c.boot), c.at.UnixNano(), c.after, c.stopped)
	line := fmt.Sprintf("%s %08x", body, crc32.ChecksumIEEE([]byte(body)))
	if c.boot == "" || len(line) >= contactSize {
		return nil, fmt.Errorf("contact: boot id %q is empty or too long", c.boot)
	}
	return []byte(line + strings.Repeat(" ", contactSize-len(line)-1) + "\n"), nil
}

// parseContact reads what encode made. The error names the torn part.
func parseContact(data []byte) (contact, error) {
	bad := func(format string, args ...any) (contact, error) {
		return contact{}, fmt.Errorf("contact: "+format, args...)
	}
	if len(data) != contactSize || data[contactSize-1] != '\n' {
		return bad("%d bytes, want %d that end in a new line", len(data), contactSize)
	}
	line := strings.TrimRight(string(data[:contactSize-1]), " ")
	body, sum, found := cutLast(line)
	if want := fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body))); !found || sum != want {
		return bad("checksum %q, want %q", sum, want)
	}
	text, found := strings.CutPrefix(body, contactHead+" ")
	fields := strings.Split(text, " ")
	if !found || len(fields) != 4 {
		return bad("%q: want %q and 4 fields", body, contactHead)
	}
	var c contact
	var err error
	if c.boot, err = url.PathUnescape(fields[0]); err != nil || c.boot == "" {
		return bad("boot id %q: %v", fields[0], err)
	}
	at, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || at < 0 {
		return bad("time %q: want nanoseconds of the boot-time clock: %v", fields[1], err)
	}
	after, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || after < 0 || after > int64(MaxAssumeDead) {
		return bad("limit %q: want nanoseconds, at most %s: %v", fields[2], MaxAssumeDead, err)
	}
	if c.stopped, err = strconv.ParseBool(fields[3]); err != nil {
		return bad("stopped %q: %v", fields[3], err)
	}
	c.at, c.after = time.Unix(0, at), time.Duration(after)
	return c, nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, ' ')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
