package websocket

import (
	"bufio"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 has it; it protects nothing
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// guid is appended to a client's key (RFC 6455, section 1.3).
const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// acceptOf is the answer to a client's key.
func acceptOf(key string) string {
	sum := sha1.Sum([]byte(key + guid)) //nolint:gosec // as above
	return base64.StdEncoding.EncodeToString(sum[:])
}

// hasToken reports whether a header has a word among those between its commas.
func hasToken(h http.Header, name, word string) bool {
	for _, line := range h.Values(name) {
		for one := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(one), word) {
				return true
			}
		}
	}
	return false
}

// IsAsked reports whether a request asks for a WebSocket.
func IsAsked(r *http.Request) bool {
	return r.ProtoMajor == 1 && hasToken(r.Header, "Connection", "upgrade") && hasToken(r.Header, "Upgrade", "websocket")
}

// Refusal is why a server does not take a connection.
type Refusal struct {
	Code int
	Text string
}

// Check returns why a server does not take a request for a WebSocket of a subprotocol. A
// page of another origin is refused: a browser would send its user's certificate along.
func Check(r *http.Request, protocol string) *Refusal {
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-Websocket-Key"))
	switch {
	case !IsAsked(r) || r.Method != http.MethodGet:
		return &Refusal{http.StatusUpgradeRequired, "want a GET over HTTP/1.1 with Connection: Upgrade and Upgrade: websocket"}
	case r.Header.Get("Sec-Websocket-Version") != "13":
		return &Refusal{http.StatusBadRequest, fmt.Sprintf("Sec-WebSocket-Version %.16q: want 13", r.Header.Get("Sec-Websocket-Version"))}
	case err != nil || len(key) != 16:
		return &Refusal{http.StatusBadRequest, fmt.Sprintf("Sec-WebSocket-Key %.64q: want 16 bytes in base64", r.Header.Get("Sec-Websocket-Key"))}
	case !hasToken(r.Header, "Sec-Websocket-Protocol", protocol):
		return &Refusal{http.StatusBadRequest, fmt.Sprintf("Sec-WebSocket-Protocol %.64q: want %s", r.Header.Get("Sec-Websocket-Protocol"), protocol)}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return &Refusal{http.StatusForbidden, fmt.Sprintf("Origin %.64q: want a page of %.64s, or none", origin, r.Host)}
		}
	}
	return nil
}

// handshakeTime bounds the answer to a handshake.
const handshakeTime = 5 * time.Second

// Accept answers a request that Check has passed. The caller closes the connection, and may
// set its deadlines.
func Accept(w http.ResponseWriter, r *http.Request, protocol string, most int) (*Conn, net.Conn, error) {
	raw, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	text := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + acceptOf(r.Header.Get("Sec-Websocket-Key")) +
		"\r\nSec-WebSocket-Protocol: " + protocol + "\r\n"
	for _, name := range slices.Sorted(maps.Keys(w.Header())) {
		for _, value := range w.Header()[name] {
			if name != "Content-Type" {
				text += name + ": " + strings.NewReplacer("\r", " ", "\n", " ").Replace(value) + "\r\n"
			}
		}
	}
	err = raw.SetDeadline(time.Now().Add(handshakeTime))
	if err == nil {
		_, err = raw.Write([]byte(text + "\r\n"))
	}
	if err = errors.Join(err, raw.SetDeadline(time.Time{})); err != nil {
		raw.Close()
		return nil, nil, err
	}
	return New(buffered.Reader, raw, false, most), raw, nil
}

// Ask sends a request for a WebSocket of a subprotocol, by a client whose transport speaks
// HTTP/1.1. Of an answer that refuses it the caller reads and closes the body; conn is nil
// then.
func Ask(client *http.Client, r *http.Request, protocol string, most int) (conn *Conn, answer *http.Response, err error) {
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, nil, err
	}
	text := base64.StdEncoding.EncodeToString(key[:])
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": text, "Sec-Websocket-Protocol": protocol,
	} {
		r.Header.Set(name, value)
	}
	answer, err = client.Do(r)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		return nil, answer, err
	}
	raw, is := answer.Body.(io.ReadWriteCloser)
	switch {
	case !is:
		err = errors.New("the client's transport does not hand the connection over")
	case !hasToken(answer.Header, "Upgrade", "websocket") || !hasToken(answer.Header, "Connection", "upgrade"):
		err = errors.New("the server has switched to another protocol than WebSocket")
	case answer.Header.Get("Sec-Websocket-Accept") != acceptOf(text):
		err = errors.New("the server's answer is not that to this request: Sec-WebSocket-Accept differs")
	case answer.Header.Get("Sec-Websocket-Protocol") != protocol:
		err = fmt.Errorf("the server speaks %.64q, want %s", answer.Header.Get("Sec-Websocket-Protocol"), protocol)
	}
	if err != nil {
		answer.Body.Close()
		return nil, nil, err
	}
	return New(bufio.NewReader(raw), raw, true, most), answer, nil
}
