// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

func TestVisibility(t *testing.T) {
	t.Parallel()
	internet := routeTable{defaultRoutes: []route{{gateway: "igw-1"}}}
	tables := map[string]routeTable{
		"rtb-internet": internet,
		"rtb-carrier":  {defaultRoutes: []route{{carrierGateway: "cagw-1"}}},
		"rtb-nat":      {defaultRoutes: []route{{gateway: ""}}},
		"rtb-local":    {},
	}
	elb, internal := map[string]string{"kubernetes.io/role/elb": "1"}, map[string]string{"kubernetes.io/role/internal-elb": "1"}
	for _, c := range []struct {
		reason string
		e      evidence
		want   Visibility
	}{
		{"the user overrides everything", evidence{hint: SubnetHint{Public: new(false), RouteTableID: "rtb-internet"}, tags: elb}, Private},
		{"the named route table leads to the internet", evidence{hint: SubnetHint{RouteTableID: "rtb-internet"}, tags: internal}, Public},
		{"a carrier gateway counts", evidence{hint: SubnetHint{RouteTableID: "rtb-carrier"}}, Public},
		{"a NAT gateway does not", evidence{hint: SubnetHint{RouteTableID: "rtb-nat"}, mapPublicIP: true}, Private},
		{"a route table that is not observed says nothing", evidence{hint: SubnetHint{RouteTableID: "rtb-other"}, tags: elb}, Public},
		{"the tag of internet load balancers", evidence{tags: elb}, Public},
		{"the tag of internal load balancers", evidence{tags: internal, mapPublicIP: true}, Private},
		{"both tags contradict each other", evidence{tags: labels.Merge(elb, internal)}, UnknownVisibility},
		{"the tag of Cluster API Provider AWS", evidence{tags: map[string]string{"sigs.k8s.io/cluster-api-provider-aws/role": "private"}}, Private},
		{"the tag of the user's choice", evidence{publicTag: "giantswarm.io/public", tags: map[string]string{"giantswarm.io/public": "true"}}, Public},
		{"a tag that no user chose", evidence{tags: map[string]string{"giantswarm.io/public": "true"}}, UnknownVisibility},
		{"public addresses", evidence{mapPublicIP: true}, Public},
		{"no evidence is not private", evidence{}, UnknownVisibility},
		{"the main route table alone is a guess", evidence{mainTable: "rtb-internet"}, UnknownVisibility},
		{"the main route table holds for the others when some are named", evidence{mainTable: "rtb-internet", hinted: true}, Public},
		{"a tag is stronger than the main route table", evidence{mainTable: "rtb-local", hinted: true, tags: elb}, Public},
	} {
		c.e.routeTables = tables
		if got, why := c.e.visibility(); got != c.want || why == "" {
			t.Errorf("%s: got %s because %s, want %s", c.reason, got, why, c.want)
		}
	}
}

func TestKubeletVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reason, release, want string }{
		{"a release of EKS", "1.31.3-20250103", "v1.31.3"},
		{"a kubelet of EKS", "v1.31.3-eks-7f9249a", "v1.31.3"},
		{"a version of GKE", "1.30.5-gke.1443001", "v1.30.5"},
		{"a version of AKS", "1.29.9", "v1.29.9"},
		{"an image is no release", "ami-0abcdef1234567890", ""},
		{"two parts are not enough for Cluster API", "1.31", ""},
		{"four parts are no version", "1.31.3.4", ""},
		{"nothing", "", ""},
	} {
		if got := kubeletVersion(c.release); got != c.want {
			t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestParseEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, raw, host string
		port              int32
	}{
		{"EKS gives a URL", "https://ABC.gr7.eu-central-1.eks.amazonaws.com", "ABC.gr7.eu-central-1.eks.amazonaws.com", 443},
		{"GKE gives an address", "34.89.1.2", "34.89.1.2", 443},
		{"an address of IPv6", "2001:db8::1", "2001:db8::1", 443},
		{"a port", "https://127.0.0.1:6443", "127.0.0.1", 6443},
		{"plain HTTP is refused", "http://example.com", "", 0},
		{"a path is refused", "https://example.com/k8s", "", 0},
		{"credentials are refused", "https://a@example.com", "", 0},
		{"a query is refused", "https://example.com?a=b", "", 0},
		{"a host must be one", "https://exa mple.com", "", 0},
		{"port zero is none", "https://example.com:0", "", 0},
	} {
		got, err := parseEndpoint(c.raw)
		if (err == nil) != (c.host != "") || got.Host != c.host || got.Port != c.port {
			t.Errorf("%s: got %+v and error %v, want %s:%d", c.reason, got, err, c.host, c.port)
		}
	}
}
