package main

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/rpcauth"
)

// ListenConfig are the addresses that are part of restListen and grpcListen unless
// they are set.
type ListenConfig struct {
	MetricsListen    string `json:"metricsListen"`
	MetricsTokenFile string `json:"metricsTokenFile"`
	EnrollListen     string `json:"enrollListen"`
}

// checkListeners returns the token of the metrics, zero where none is needed.
func (c ListenConfig) checkListeners(tls bool, checkListen func(field, address string) error) (metrics rpcauth.Token, err error) {
	var errs []error
	if c.MetricsListen != "" {
		errs = append(errs, checkListen("metricsListen", c.MetricsListen))
	}
	switch {
	case c.EnrollListen == "":
	case !tls:
		errs = append(errs, fmt.Errorf("enrollListen: %q: has no effect without tls.enabled", c.EnrollListen))
	default:
		errs = append(errs, checkListen("enrollListen", c.EnrollListen))
	}
	if c.MetricsTokenFile != "" {
		if metrics, err = rpcauth.ReadFile(c.MetricsTokenFile); err != nil {
			errs = append(errs, fmt.Errorf("metricsTokenFile: %w", err))
		}
	}
	return metrics, errors.Join(errs...)
}
