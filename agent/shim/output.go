package shim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// This file keeps the output of a command. A log file is named by the offset of its
// first byte in the whole output, so that a reader knows what it has missed.

const logPrefix = "log."

// output writes the output of a command into files. Beyond the share of the member, and where
// the file system has little room, older output gives way; on a full file system new output is
// lost. The command never waits.
type output struct {
	folder Folder
	most   int64 // bytes of a file
	files  int
	file   *os.File
	begin  int64 // offset of the file in the output
	size   int64 // of the file
	lost   int64 // bytes behind the file that were not kept

	limit   int64                     // of all files, as of the last look
	fresh   int64                     // bytes since the last look
	looked  time.Time                 // of the last look
	room    func() (size, free int64) // of the file system, in bytes
	isShort bool                      // the file system has no room for output
}

const (
	// lookBytes and lookEvery are the output and the time between two looks at the share and
	// at the file system.
	lookBytes = 1 << 20
	lookEvery = time.Second
	// shortBytes is the output that a member keeps where the file system has little room.
	shortBytes = 256 << 10
	// leastFile bounds the size of log files from below, beside Spec.LogBytes.
	leastFile = 4 << 10
)

func logName(begin int64) string { return fmt.Sprintf("%s%020d", logPrefix, begin) }

func newOutput(f Folder, most int64, files int) (*output, error) {
	o := &output{folder: f, most: most, files: files, limit: most * int64(files)}
	o.room = func() (size, free int64) {
		var stat unix.Statfs_t
		if unix.Statfs(string(f), &stat) != nil {
			return 0, 0
		}
		return int64(stat.Blocks) * stat.Bsize, int64(stat.Bavail) * stat.Bsize
	}
	if err := o.next(); err != nil && !IsFull(err) {
		return nil, err
	}
	return o, nil
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (n int, err error) {
	o.look(len(p))
	for len(p) > 0 {
		if o.isShort {
			o.lost += int64(len(p))
			return n + len(p), nil
		}
		if o.file == nil || o.size >= o.fileMost() || o.lost > 0 {
			if err := o.next(); IsFull(err) {
				o.giveWay()
				continue
			} else if err != nil {
				return n, err
			}
		}
		part := p[:min(int64(len(p)), o.fileMost()-o.size)]
		k, err := o.file.Write(part)
		n, o.size = n+k, o.size+int64(k)
		p = p[k:]
		if IsFull(err) {
			o.giveWay()
		} else if err != nil {
			return n, err
		}
	}
	return n, nil
}

// giveWay removes all output of the member: others need the room. Further output is lost until the
// next look.
func (o *output) giveWay() {
	if o.file != nil {
		_ = o.file.Close() // a failure is due to the full file system
		o.begin, o.file, o.size = o.begin+o.size, nil, 0
	}
	o.folder.dropLogs()
	o.isShort = true
}

// fileMost is the size at which a file is followed by the next.
func (o *output) fileMost() int64 { return min(o.most, max(o.limit/int64(o.files), leastFile)) }

// look takes the share of the member and the room of the file system into account, from time to
// time.
func (o *output) look(more int) {
	o.fresh += int64(more)
	now := time.Now()
	if o.fresh < lookBytes && now.Sub(o.looked) < lookEvery {
		return
	}
	o.fresh, o.looked = 0, now
	o.limit = o.most * int64(o.files)
	if s, err := o.folder.Share(); err == nil {
		o.limit = min(o.limit, s.Bytes)
	}
	size, free := o.room()
	floor := min(size/10, 1<<30)
	o.isShort = size > 0 && free < floor/4
	if size > 0 && free < floor {
		o.limit = min(o.limit, shortBytes)
	}
	o.trim(o.limit)
}

// trim removes the oldest files beyond a limit of bytes, but the present file.
func (o *output) trim(limit int64) {
	begins, err := o.folder.logs()
	if err != nil {
		return
	}
	sum := o.folder.LogBytes()
	for i, begin := range begins {
		if begin == o.begin || sum <= limit && len(begins)-i <= o.files {
			return
		}
		if info, err := os.Stat(o.folder.path(logName(begin))); err == nil {
			sum -= info.Size()
		}
		_ = os.Remove(o.folder.path(logName(begin))) // the next look tries again
	}
}

// next begins another file and removes the oldest ones.
func (o *output) next() error {
	if o.file != nil {
		err := o.file.Close()
		o.begin += o.size
		o.file, o.size = nil, 0
		if err != nil && !IsFull(err) {
			return err
		}
	}
	o.begin, o.lost = o.begin+o.lost, 0
	file, err := os.OpenFile(o.folder.path(logName(o.begin)), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	o.file = file
	o.trim(max(0, o.limit-o.fileMost()))
	return nil
}

// sync makes the output durable, as far as there is a file.
func (o *output) sync() {
	if o.file != nil {
		_ = o.file.Sync()
	}
}

// logs are the offsets of the log files, ascending.
func (f Folder) logs() ([]int64, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	var list []int64
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), logPrefix)
		if begin, err := strconv.ParseInt(text, 10, 64); ok && err == nil && begin >= 0 {
			list = append(list, begin)
		}
	}
	slices.Sort(list)
	return list, nil
}

// ReadLog reads output from an offset into p. It returns the offset of the first
// byte that was read, which is later than from where older output is gone, and 0
// bytes where there is no more yet.
func (f Folder) ReadLog(from int64, p []byte) (at int64, n int, err error) {
	begins, err := f.logs()
	if err != nil || len(begins) == 0 {
		return from, 0, err
	}
	at = max(from, begins[0])
	for i, begin := range slices.Backward(begins) {
		if at < begin {
			continue
		}
		file, err := os.Open(f.path(logName(begin)))
		if errors.Is(err, fs.ErrNotExist) { // it was the oldest, and is gone
			return f.ReadLog(begin+1, p)
		} else if err != nil {
			return at, 0, err
		}
		n, err = file.ReadAt(p, at-begin)
		file.Close()
		if n == 0 && i+1 < len(begins) && at < begins[i+1] {
			return f.ReadLog(begins[i+1], p)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return at, n, err
	}
	return at, 0, nil
}

// LogBytes is the size of the log files, in bytes.
func (f Folder) LogBytes() int64 {
	var sum int64
	begins, _ := f.logs()
	for _, begin := range begins {
		if info, err := os.Stat(filepath.Join(string(f), logName(begin))); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// dropLogs removes all output.
func (f Folder) dropLogs() {
	begins, _ := f.logs()
	for _, begin := range begins {
		_ = os.Remove(f.path(logName(begin)))
	}
}

// TrimLogs removes the oldest log files until at most a number of bytes, or the newest file
// alone, is left. Only the owner of the lock of a member that has ended may call TrimLogs.
func (f Folder) TrimLogs(limit int64) {
	begins, err := f.logs()
	if err != nil {
		return
	}
	for _, begin := range begins[:max(0, len(begins)-1)] {
		if f.LogBytes() <= limit {
			return
		}
		_ = os.Remove(f.path(logName(begin)))
	}
}
