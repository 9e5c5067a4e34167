package rest

import (
	"log/slog"
	"net/http"
	"time"
)

// writeTimeout bounds an answer; a wait extends it by its own length.
const writeTimeout = 30 * time.Second

// idleTimeout ends a connection on which nothing is asked.
const idleTimeout = 2 * time.Minute

// maxStreams bounds the requests of one HTTP/2 connection at a time. pingAfter is
// how long such a connection may be silent before its client is asked, and how
// long the client may take to answer. stallAfter is how long its socket may take no byte:
// the end of one stream cannot be written to such a connection either, so the
// connection ends.
const (
	maxStreams = 64
	pingAfter  = 15 * time.Second
	stallAfter = 5 * time.Second
)

// maxHeader bounds the headers of a request, in bytes; net/http takes 4 KiB more.
const maxHeader = 28 << 10

// NewServer wraps a handler in a server for HTTP/1.1 and HTTP/2, the latter also without TLS (prior knowledge), with limits on the resources that a slow or hostile client can hold: 5 s for headers of at
// most 32 KiB, 30 s for an answer beyond its wait, 10 s for a body, 2 min for an idle connection. There is no read timeout on the whole
// request, since it would also end waits. The caller listens, serves and shuts down.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:           plainPaths(bodyDeadline(handler)),
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter, PingTimeout: pingAfter, WriteByteTimeout: stallAfter},
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withConnection,
	}
	if logger != nil {
		server.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	}
	return server
}

// bodyTimeout bounds how long a request's body may take to arrive.
const bodyTimeout = 10 * time.Second

// bodyDeadline ends the reading of a body that does not arrive, also where the
// handler refuses the request and does not read the body: net/http reads the
// rest of it before the next request. A handler that has read the body ends the
// deadline itself.
func bodyDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// A test recorder has no deadline to set, hence the ignored error.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		next.ServeHTTP(w, r)
	})
}
