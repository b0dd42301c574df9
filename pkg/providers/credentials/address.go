// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"net/netip"
)

// Addresses at which clouds serve credentials to whoever can reach them, beyond the link-local ones.
var metadataAddresses = map[netip.Addr]bool{
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"):   true, // Azure, WireServer
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle Cloud
	netip.MustParseAddr("fd00:ec2::254"):   true, // AWS
	netip.MustParseAddr("fd20:ce::254"):    true, // Google Cloud
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8") // Linux treats it as the own host
	nat64       = netip.MustParsePrefix("64:ff9b::/96")
)

// CheckAddress says why an IP address is not connected to, or returns nil. A kubeconfig is written by somebody else, and
// the manager stands where its author may not: without this check, its connections would be a way to reach the
// metadata service of the manager's node and what listens on the manager's loopback interface. Dialers call it with the
// address that a name resolved to, so that DNS is no way around it.
func (o Options) CheckAddress(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case !a.IsValid():
		return errors.New("not an IP address")
	case a.IsLoopback():
		if !o.AllowLoopback {
			return fmt.Errorf("loopback addresses are refused: %s", a)
		}
		return nil
	case a.IsUnspecified(), thisNetwork.Contains(a):
		return fmt.Errorf("unspecified addresses are refused: %s", a)
	case a.IsLinkLocalUnicast():
		return fmt.Errorf("link-local addresses are refused: %s", a)
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("multicast addresses are refused: %s", a)
	case metadataAddresses[a]:
		return fmt.Errorf("addresses of cloud metadata services are refused: %s", a)
	default:
		return nil
	}
}
