package redis_test

import (
	"testing"

	client "github.com/redis/go-redis/v9"

	"github.com/musterd/muster/test/redis"
)

func TestAServerLosesItsDataWithAKill(t *testing.T) {
	s := redis.Start(t)
	options, err := client.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Set(t.Context(), "a", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Restart(t)
	if n, err := c.Exists(t.Context(), "a").Result(); n != 0 || err != nil {
		t.Errorf("%d keys after the restart, %v; want none", n, err)
	}
}
