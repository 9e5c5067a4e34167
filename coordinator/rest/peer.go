package rest

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Headers between coordinators, and from them.
const (
	// hopHeader names the coordinator that has passed a request on: a
	// coordinator that gets the header does not pass the request on again.
	hopHeader = "Muster-Forwarded-By"
	// hopProofHeader proves that hopHeader is a coordinator's (service.Forward): such
	// a request has been counted.
	hopProofHeader = "Muster-Forward-Proof"
	// clientHeader is the address of the client of a request that was passed on. It
	// counts with the proof alone.
	clientHeader = "Muster-Forwarded-For"
	// certificateHeader names the client certificate of a caller without a token, where a
	// coordinator passes the request on (service.CertificateName).
	certificateHeader = "Muster-Client-Certificate"
	// revisionHeader is, in answers, a revision that is not older than any
	// object of the answer.
	revisionHeader = "Muster-Revision"
)

// hopByHop are the headers of one connection (RFC 9110, section 7.6.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		out.Del(name)
	}
	return out
}

// base is the URL below which a coordinator serves.
func base(address string) (*url.URL, error) {
	if strings.Contains(address, "://") {
		return url.Parse(address)
	}
	return &url.URL{Scheme: "http", Host: address}, nil
}

// newPeerClient sends requests to other coordinators. It follows no redirect,
// uses no proxy and changes no encoding.
func newPeerClient(c Config) *http.Client {
	t := &http.Transport{
		DialContext: c.DialPeer, TLSClientConfig: c.PeerTLS, TLSHandshakeTimeout: peerDialTimeout,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTimeout / 2, DisableCompression: true,
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// peerDialer notices within about 3 s that a coordinator's host is cut off, while
// an answer is awaited and while a connection is kept for the next request.
func peerDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         peerDialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2},
		Control: func(_, _ string, c syscall.RawConn) error {
			var failed error
			err := c.Control(func(fd uintptr) {
				failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged/time.Millisecond))
			})
			return errors.Join(err, failed)
		},
	}
}

// unacknowledged bounds how long the other host's kernel may acknowledge nothing
// that was sent to it.
const unacknowledged = 3 * time.Second

// revisionOf reads an answer's revision; 0 if it has none.
func revisionOf(header http.Header) int64 {
	rev, err := strconv.ParseInt(header.Get(revisionHeader), 10, 64)
	if err != nil {
		return 0
	}
	return rev
}
