// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Addresses at which clouds serve credentials to any client, beyond the link-local ones.
var metadataAddresses = map[netip.Addr]bool{
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"):   true, // Azure, WireServer
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle Cloud
	netip.MustParseAddr("fd00:ec2::254"):   true, // AWS
	netip.MustParseAddr("fd20:ce::254"):    true, // Google Cloud
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8") // Linux treats it as the local host
	nat64       = netip.MustParsePrefix("64:ff9b::/96")
)

// ErrDenied is returned by CheckAddress for an address in one of Options.DeniedCIDRs.
var ErrDenied = errors.New("the operator of this manager denies connections to this address (--denied-endpoint-cidrs)")

// deniedMessage reveals nothing new to the author of a kubeconfig: neither the network, nor whether anything is there.
const deniedMessage = "The kubeconfig's server has an address to which the operator of this manager denies connections " +
	"(--denied-endpoint-cidrs)"

// loopbackRefused names the flag of the manager, and of kubectl masthead, that decides, as all such messages do.
const loopbackRefused = "loopback addresses are refused without --allow-loopback-endpoints"

// ParseCIDR parses a network for Options.DeniedCIDRs. IPv4 networks in IPv6 notation are converted to IPv4.
func ParseCIDR(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a network in CIDR notation", s)
	}
	const mapped = 96
	if p.Addr().Is4In6() && p.Bits() >= mapped {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped)
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("%q is an address within a network: the network is %s", s, p.Masked())
	}
	return p, nil
}

// denied reports whether the operator denies one of these addresses.
func (o Options) denied(addresses ...netip.Addr) bool {
	return slices.ContainsFunc(o.DeniedCIDRs, func(p netip.Prefix) bool { return slices.ContainsFunc(addresses, p.Contains) })
}

// CheckAddress returns why an IP address is refused, or nil. A kubeconfig is untrusted, and the manager can reach hosts
// that its author cannot: without this check, connections could reach the metadata service of the manager's node and
// the manager's loopback interface. Dialers call it with the resolved address, so DNS cannot bypass it.
func (o Options) CheckAddress(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	written := a
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case !a.IsValid():
		return errors.New("not an IP address")
	case o.denied(a, written):
		return ErrDenied
	case a.IsLoopback():
		if !o.AllowLoopback {
			return fmt.Errorf("%s: %s", loopbackRefused, a)
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
