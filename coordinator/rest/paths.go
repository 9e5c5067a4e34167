package rest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// plainPaths refuses paths that parties on the way could read in two ways, before
// anything is routed: http.ServeMux would answer some of them with a redirect.
func plainPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := oddPath(r.URL); why != "" {
			status := api.Errorf(http.StatusBadRequest, "path %s: %s", strconv.QuoteToASCII(clip(r.URL.EscapedPath())), why)
			status.RequestID = service.RequestID(r.Header.Get(requestIDHeader))
			body, err := json.Marshal(status)
			if err != nil {
				panic(err) // a status can always be encoded
			}
			w.Header().Set(requestIDHeader, status.RequestID)
			w.Header().Set("Content-Type", typeJSON)
			w.WriteHeader(status.Code)
			_, _ = w.Write(append(body, '\n')) // the client may be gone
			return
		}
		next.ServeHTTP(w, r)
	})
}

// oddPath is the reason why a path is refused, "" for a plain one. The path of each
// object is visible ASCII, and a slash parts segments and is in none.
func oddPath(u *url.URL) string {
	escaped := strings.ToLower(u.EscapedPath())
	switch {
	case u.Path == "*" || u.Path == "": // OPTIONS * and CONNECT
		return ""
	case strings.Contains(u.Path, "//"):
		return "a segment is empty"
	case strings.Contains(escaped, "%2f"), strings.Contains(escaped, "%5c"), strings.Contains(u.Path, `\`):
		return "a segment has a slash or a backslash"
	case strings.ContainsFunc(u.Path, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "want visible ASCII"
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return "a segment is . or .."
		}
	}
	return ""
}
