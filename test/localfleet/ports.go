// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Ports are taken from below the range that the kernel uses for outgoing connections. Any client can take a port of
// that range between the moment it was found free and the moment the server binds it, and again while a server is
// restarted on its port.
const (
	lowestPort         = 20000
	defaultHighestPort = 32767
	ephemeralPortsFile = "/proc/sys/net/ipv4/ip_local_port_range"
)

// portAllocator finds free loopback ports and returns none twice. It cannot keep other programs from taking a port that
// it has found, so code that starts a server on one must be ready to try another (see startServer).
type portAllocator struct {
	mu     sync.Mutex
	given  map[int]bool
	lowest int
	count  int
	// free reports whether a port can be bound. It is a field so that tests can make ports unavailable.
	free func(port int) bool
}

func newPortAllocator() *portAllocator {
	return &portAllocator{
		given:  map[int]bool{},
		lowest: lowestPort,
		count:  highestPort(os.ReadFile) - lowestPort + 1,
		free:   portIsFree,
	}
}

// take returns a port on which no process listens.
func (a *portAllocator) take() (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// The search starts at a random port so that several fleets on one machine rarely try the same port.
	first := rand.IntN(a.count)
	for i := range a.count {
		port := a.lowest + (first+i)%a.count
		if a.given[port] || !a.free(port) {
			continue
		}
		a.given[port] = true
		return port, nil
	}
	return 0, errors.New("cannot find a free port on 127.0.0.1")
}

// reserve keeps take from returning a port, which may be free at the moment.
func (a *portAllocator) reserve(port int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given[port] = true
}

func portIsFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = listener.Close()
	// Crossplane and the webhook server of Cluster API listen on all addresses.
	listener, err = net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// highestPort is the last port before the kernel's range for outgoing connections, if that leaves enough, else a
// default.
func highestPort(readFile func(string) ([]byte, error)) int {
	content, err := readFile(ephemeralPortsFile)
	if err != nil {
		return defaultHighestPort
	}
	fields := strings.Fields(string(content))
	if len(fields) == 0 {
		return defaultHighestPort
	}
	first, err := strconv.Atoi(fields[0])
	if err != nil || first < lowestPort+1000 || first > 65536 {
		return defaultHighestPort
	}
	return first - 1
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
