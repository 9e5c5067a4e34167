package ipc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
)

// Keys are the gossip keys behind `serf keys`. The methods may block for some
// seconds; their errors are printed to the operator.
type Keys interface {
	// List returns the keys, the one that encrypts first.
	List(ctx context.Context) ([][]byte, error)
	Install(ctx context.Context, key []byte) error
	Use(ctx context.Context, key []byte) error
	Remove(ctx context.Context, key []byte) error
}

// keyTime bounds one command; the stock client waits without a limit.
const keyTime = 15 * time.Second

var errNoKeys = errors.New("the rings are not encrypted: without TLS they are on loopback alone, and there are no keys")

func (c *connection) changeKeys(seq uint64, change func(Keys, context.Context, []byte) error) error {
	var r keyRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	response := keyResponse{NumNodes: 1, NumResp: 1}
	err := c.change(r.Key, change)
	if err != nil {
		response.NumErr = 1
	}
	return c.send(seq, text(err), &response)
}

func (c *connection) change(encoded string, change func(Keys, context.Context, []byte) error) error {
	keys := c.server.config.Keys
	if keys == nil {
		return errNoKeys
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("the key is not base64: %w", err)
	}
	ctx, cancel := context.WithTimeout(c.ctx, keyTime)
	defer cancel()
	return change(keys, ctx, key)
}

func (c *connection) listKeys(seq uint64) error {
	ctx, cancel := context.WithTimeout(c.ctx, keyTime)
	defer cancel()
	var list [][]byte
	err := errNoKeys
	if keys := c.server.config.Keys; keys != nil {
		list, err = keys.List(ctx)
	}
	response := keyResponse{NumNodes: 1, NumResp: 1, Keys: map[string]int{}}
	for _, key := range list {
		response.Keys[base64.StdEncoding.EncodeToString(key)] = 1
	}
	return c.send(seq, text(err), &response)
}
