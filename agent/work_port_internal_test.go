package agent

import (
	"net"
	"testing"
)

func TestAPortIsInUseWhileAProgramListens(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if !isPortInUse(port) {
		t.Errorf("port %d is free while a program listens there", port)
	}
	l.Close()
	if isPortInUse(port) {
		t.Errorf("port %d is in use after its program has closed it", port)
	}
}
