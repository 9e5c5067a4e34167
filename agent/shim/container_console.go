package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// console is a socket over which the container tool hands the person's end of a terminal
// over: the terminal is one of the container's own.
type console struct {
	folder   *os.File // of the socket; the tool enters it by this descriptor alone
	name     string
	listener *net.UnixListener
}

// consoleFolder is the folder of these sockets, in that of the start, where the shim is.
const consoleFolder = "console"

func openConsole() (*console, error) {
	if err := os.Mkdir(consoleFolder, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	c := &console{name: drawName(8)}
	path := filepath.Join(consoleFolder, c.name)
	var err error
	if c.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return nil, err
	}
	if err = os.Chmod(path, 0o666); err == nil { // whoever reaches it
		c.folder, err = os.Open(consoleFolder)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *console) close() {
	if c == nil {
		return
	}
	_ = c.listener.Close()
	if c.folder != nil {
		_ = c.folder.Close() // a second time with the files of the tool
	}
}

// consoleWait bounds the wait for a terminal that the tool has sent before its end.
const consoleWait = 10 * time.Second

// take takes the terminal.
func (c *console) take() (*os.File, error) {
	if err := c.listener.SetDeadline(time.Now().Add(consoleWait)); err != nil {
		return nil, err
	}
	conn, err := c.listener.AcceptUnix()
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(consoleWait)); err != nil {
		return nil, err
	}
	data, passed := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(data, passed)
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	fds, err := passedFiles(passed[:n])
	if err != nil || len(fds) != 1 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, fmt.Errorf("the terminal: %d files (%v), want 1", len(fds), err)
	}
	if _, err := unix.IoctlGetUint32(fds[0], unix.TIOCGPTN); err != nil { // it is the person's end of one
		_ = unix.Close(fds[0])
		return nil, fmt.Errorf("the terminal: the file is none: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		_ = unix.Close(fds[0])
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "terminal"), nil
}

// passedFiles are the descriptors that control messages bring. Whoever writes to the socket
// has chosen their number, and the kernel the rest.
func passedFiles(control []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range messages {
		if len(messages[i].Data)%4 != 0 {
			return fds, fmt.Errorf("%d bytes are no descriptors", len(messages[i].Data))
		}
		if passed, err := unix.ParseUnixRights(&messages[i]); err == nil { // other messages bring none
			fds = append(fds, passed...)
		}
	}
	return fds, nil
}
