// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command architecture prints docs/images/architecture.svg, the picture of the page about concepts.
package main

import "os"

func main() {
	_, _ = os.Stdout.WriteString(picture())
}

// picture returns a picture of a hub with what runs in it, two workload clusters, and what is transferred between them.
func picture() string {
	var p canvas
	p.cluster(20, 20, 430, 500, "hub (management cluster)")
	p.box(40, 66, 220, 52, kindObject, "EnrollmentClass", "who, where to, whose rights")
	p.box(40, 126, 220, 52, kindObject, "Cluster, or Secret", "masthead.dev/enroll=true")
	p.box(40, 200, 220, 52, kindObject, "ClusterProfile", "the inventory")
	p.box(40, 260, 220, 52, kindObject, "ApplicationReport", "the health of Applications")
	p.box(40, 334, 220, 52, kindObject, "bar/sqldb", "the claim's object")
	p.box(40, 394, 220, 52, kindObject, "bar/sql-creds", "its connection Secret")
	p.box(40, 468, 220, 40, kindProgram, "Crossplane")
	p.box(310, 66, 120, 442, kindProgram, "Masthead", "one manager", "for the fleet")

	p.cluster(610, 20, 370, 340, "workload cluster w1")
	p.box(635, 66, 320, 52, kindObject, "definitions, Compositions", "read-only copies of the hub's")
	p.box(635, 146, 152, 80, kindObject, "default/sqldb", "a claim", "with its status")
	p.box(803, 146, 152, 80, kindObject, "default/sql-creds", "the Secret,", "beside the claim")
	p.box(635, 254, 320, 74, kindObject, "Application", "which objects belong together,", "installed or not, and their health")
	p.cluster(610, 390, 370, 130, "workload clusters w2, w3 …")
	p.text(795, 470, "text", "nothing of Masthead runs in any of them")

	p.arrow(260, 92, 308, 92)
	p.arrow(260, 152, 308, 152)
	p.arrow(310, 226, 262, 226)
	p.arrow(310, 286, 262, 286)
	p.arrow(310, 360, 262, 360)
	p.arrow(260, 420, 308, 420)
	p.arrow(150, 468, 150, 448)

	p.arrow(430, 92, 608, 92)
	p.text(530, 83, "label", "definitions")
	p.arrow(608, 170, 432, 170)
	p.text(530, 161, "label", "spec")
	p.arrow(430, 206, 608, 206)
	p.text(530, 197, "label", "status, Secret")
	p.arrow(608, 291, 432, 291)
	p.text(530, 282, "label", "health")
	p.arrow(430, 455, 608, 455)
	p.text(530, 446, "label", "connects")
	return p.svg(1000, 540, "Masthead: one manager in the hub connects to the API server of each workload cluster")
}
