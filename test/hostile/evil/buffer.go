package evil

import "syscall"

// smallBuffer makes a connection take little of what its reader does not read.
func smallBuffer(_, _ string, c syscall.RawConn) error {
	var err error
	if other := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) }); other != nil {
		return other
	}
	return err
}
