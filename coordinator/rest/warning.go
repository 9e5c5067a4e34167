package rest

import (
	"net/http"
	"strings"
)

// addWarnings writes warnings as headers of the form Warning: 299 muster "text", as
// Kubernetes' API server does. RFC 9110, section 5.6.4, has the quoted text.
func addWarnings(header http.Header, texts []string) {
	for _, text := range texts {
		header.Add("Warning", `299 muster "`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`)
	}
}
