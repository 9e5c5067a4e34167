package agent

import (
	"errors"
	"net"
	"strconv"
	"syscall"

	"github.com/musterd/muster/grant"
)

// notePortInUse logs where a program of the host has the port of a unit already whose
// member 0 is about to start here. The members start all the same: their command may not
// need the port.
func (o *owner) notePortInUse(c *grant.Start) {
	if len(c.Members) == 0 || c.Members[0].Index != 0 || len(c.Hosts) < 2 || o.agent.runner.Has(c.Tx) {
		return
	}
	if isPortInUse(c.Port) {
		o.log.Warn("rendezvous_port_in_use", "tx", string(c.Tx), "port", c.Port,
			"message", "another program of this host listens at MASTER_PORT: see ss -ltnp; the coordinators avoid the ports of other units alone")
	}
}

// isPortInUse reports whether a program of the host listens at a TCP port.
func isPortInUse(port int) bool {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return errors.Is(err, syscall.EADDRINUSE)
	}
	l.Close()
	return false
}
