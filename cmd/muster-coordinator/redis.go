package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/musterd/muster/coordinator/history/redis"
)

// redisConfig is a Redis server that gets the newest heartbeat of each node.
type redisConfig struct {
	Address      string `json:"address"`      // "" = none
	PasswordFile string `json:"passwordFile"` // "" = none, or that of address
	CAFile       string `json:"caFile"`       // "" = the authorities of the host
	KeyPrefix    string `json:"keyPrefix"`
}

// mostRedisPrefix bounds keyPrefix, in bytes.
const mostRedisPrefix = 128

// check returns the server; the address is "" for none.
func (r redisConfig) check() (redis.Options, error) {
	out := redis.Options{Address: r.Address, Prefix: r.KeyPrefix}
	var errs []error
	if r.Address == "" {
		for field, value := range map[string]string{"passwordFile": r.PasswordFile, "caFile": r.CAFile, "keyPrefix": r.KeyPrefix} {
			if value != "" {
				errs = append(errs, fmt.Errorf("history.redis.%s: %q: has no effect without history.redis.address", field, value))
			}
		}
		return out, errors.Join(errs...)
	}
	if len(r.KeyPrefix) > mostRedisPrefix || strings.ContainsFunc(r.KeyPrefix, func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) }) {
		errs = append(errs, fmt.Errorf("history.redis.keyPrefix: %.200q: want at most %d bytes without blanks", r.KeyPrefix, mostRedisPrefix))
	}
	if r.PasswordFile != "" {
		password, err := readPassword(r.PasswordFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("history.redis.passwordFile: %w", err))
		}
		out.Password = password
	}
	if r.CAFile != "" {
		roots, err := readRoots(r.CAFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("history.redis.caFile: %w", err))
		}
		out.Roots = roots
	}
	if _, err := redis.Open(out); err != nil { // it connects to nothing
		errs = append(errs, fmt.Errorf("history.redis.address: %w", err))
	}
	return out, errors.Join(errs...)
}

// readRoots reads authorities, PEM, from an absolute path.
func readRoots(path string) (*x509.CertPool, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q: want an absolute path", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate in PEM", path)
	}
	return roots, nil
}
