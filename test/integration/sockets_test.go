package integration

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// portIsFree reports whether a loopback port can be bound for TCP and UDP.
func portIsFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	defer l.Close()
	c, err := net.ListenPacket("udp", loopback(port))
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// socket is one socket on which a process can be reached.
type socket struct {
	network string // "tcp" or "udp"
	local   netip.AddrPort
}

func (s socket) String() string { return s.network + " " + s.local.String() }

// States of proc_net_tcp(5): a TCP socket that listens, and a UDP socket that
// is connected to nobody, hence takes packets of anybody.
const (
	tcpListen    = "0A"
	udpUnbounded = "07"
)

// listening returns the sockets on which a process can be reached, from
// /proc/PID/fd and /proc/PID/net.
func listening(t *testing.T, pid int) []socket {
	t.Helper()
	own := socketInodes(t, pid)
	var found []socket
	for _, network := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, network))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n")[1:] {
			fields := strings.Fields(line)
			if len(fields) < 10 || !own[fields[9]] {
				continue
			}
			if state := fields[3]; state != tcpListen && state != udpUnbounded {
				continue
			}
			local, err := parseAddress(fields[1])
			if err != nil {
				t.Fatalf("/proc/%d/net/%s: %q: %v", pid, network, line, err)
			}
			found = append(found, socket{network[:3], local})
		}
	}
	slices.SortFunc(found, func(a, b socket) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// socketInodes returns the inodes of a process's sockets.
func socketInodes(t *testing.T, pid int) map[string]bool {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue // closed since
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes
}

// parseAddress reads "0100007F:1F90": words of the address in the byte order
// of a little-endian host.
func parseAddress(text string) (netip.AddrPort, error) {
	address, port, ok := strings.Cut(text, ":")
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%q has no port", text)
	}
	raw, err := hex.DecodeString(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	ip, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("an address of %d bytes", len(raw))
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), nil
}

func TestAddressesOfTheKernelAreReadRight(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"00000000:0016":                         "0.0.0.0:22",
		"00000000000000000000000001000000:1F90": "[::1]:8080",
		"0000000000000000FFFF00000100007F:0001": "127.0.0.1:1",
	} {
		if got, err := parseAddress(text); err != nil || got.String() != want {
			t.Errorf("%s: got %v, %v; want %s", text, got, err, want)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := socket{"tcp", netip.MustParseAddrPort(l.Addr().String())}
	if got := listening(t, os.Getpid()); !slices.Contains(got, want) {
		t.Errorf("this process listens on %s, found %s", want, got)
	}
}
