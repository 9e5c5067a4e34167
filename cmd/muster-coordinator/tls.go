package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/coordinator/enroll"
)

// tlsConfig is the key tls of the config file.
type tlsConfig struct {
	Enabled    bool                `json:"enabled"`
	Dir        string              `json:"dir"`
	CACertFile string              `json:"caCertFile"`
	CAKeyFile  string              `json:"caKeyFile"`
	Names      []string            `json:"names"`
	CertTTL    configfile.Duration `json:"certTTL"`
	REST       bool                `json:"rest"`
}

type field struct{ name, value string }

// Bounds of tls.certTTL: below, renewals alone would keep a coordinator busy;
// above, browsers refuse.
const (
	minCertTTL = 10 * time.Second
	maxCertTTL = 398 * 24 * time.Hour
)

// hostName is a DNS name or an IP address, as certificates hold them.
var hostName = regexp.MustCompile(`^[A-Za-z0-9:]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?$`)

// checkTLS returns the settings of the daemon, nil without TLS. A key that is set and
// would have no effect is refused.
func (c config) checkTLS() (*daemon.TLSConfig, error) {
	t := c.TLS
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	ttl, err := t.CertTTL.Check("tls.certTTL", minCertTTL, maxCertTTL)
	if err != nil {
		errs = append(errs, err)
	}
	if !t.Enabled {
		for _, f := range []field{{"tls.dir", t.Dir}, {"tls.caCertFile", t.CACertFile}, {"tls.caKeyFile", t.CAKeyFile}, {"advertise", c.Advertise}} {
			if f.value != "" {
				refuse("%s: %q: has no effect without tls.enabled", f.name, f.value)
			}
		}
		if t.REST || len(t.Names) > 0 {
			refuse("tls.rest: %t, tls.names: %q: have no effect without tls.enabled", t.REST, t.Names)
		}
		return nil, errors.Join(errs...)
	}
	if c.TokenFile != "" {
		refuse("tokenFile: %q: unused with tls.enabled, where each party has a certificate; remove it", c.TokenFile)
	}
	for i, name := range t.Names {
		if !hostName.MatchString(name) {
			refuse("tls.names[%d]: %q: want a host name or an IP address", i, name)
		}
	}
	dir := t.Dir
	if dir == "" {
		dir = filepath.Join(c.DataDir, "tls")
	}
	out := &daemon.TLSConfig{Dir: dir, Names: t.Names, TTL: ttl, REST: t.REST}
	for _, f := range []field{{"tls.dir", dir}, {"tls.caCertFile", t.CACertFile}, {"tls.caKeyFile", t.CAKeyFile}} {
		if f.value != "" && !filepath.IsAbs(f.value) {
			refuse("%s: %q: want an absolute path", f.name, f.value)
		}
	}
	switch {
	case (t.CACertFile == "") != (t.CAKeyFile == ""):
		refuse("tls.caCertFile: %q, tls.caKeyFile: %q: want both, for an authority of your own, or neither, for the built-in one", t.CACertFile, t.CAKeyFile)
	case t.CACertFile != "":
		out.Files = &enroll.Files{Certificates: t.CACertFile, Key: t.CAKeyFile}
	}
	return out, errors.Join(errs...)
}
