// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localfleet runs a fleet on one machine: a hub and workload clusters, each a real Kubernetes control plane
// made of processes, without containers and without downloads beyond Go modules. The demo, the tests and the benchmarks
// use it, and cmd/localfleet is its command. The programs come from hack/build-controlplane.sh. It needs Linux, because
// it identifies processes by /proc.
//
//	fleet, err := localfleet.Up(ctx, localfleet.Options{
//		Dir: t.TempDir(), Workloads: localfleet.WorkloadNames(2), WithKwok: true, StopWithParent: true,
//	})
//	defer fleet.Down(ctx)
//	hub, err := fleet.Config(localfleet.HubName)
//
// The hub: etcd, kube-apiserver, kube-controller-manager and, if the options enable them, Crossplane core with the
// fleet's own composition function (package function) and Cluster API core. A workload cluster: the same three and, if
// the options enable it, kwok, which makes one node and every pod Ready. There is no scheduler; an admission policy
// binds pods to the node. CRDs are installed from the modules that the repository pins.
//
// Each workload cluster is a Cluster (v1beta2) in the hub, with an infrastructure and a control plane of two small CRDs
// that fulfil the contract of Cluster API, so that the real Cluster API core sets its status. The Secret
// <name>-kubeconfig holds a token of the service account masthead-system/masthead in the workload cluster, which has
// the rights of Options.WorkloadRBAC and those that Cluster API core needs: both use the one Secret.
//
// It guarantees:
//
//   - Every server listens on 127.0.0.1, except ports of Crossplane and Cluster API that have no flag for it. Clients
//     have certificates or tokens, each cluster has authorities of its own, and authorization is RBAC.
//   - Up returns when everything is ready. Its errors contain the end of the log of the process that failed. It removes
//     what a fleet that crashed has left in the folder.
//   - A process is signalled only after it was recognised by its id, start time, program and boot of the machine. With
//     Options.StopWithParent the kernel kills the fleet when its parent ends. Down leaves no process and no file.
//
// What differs from other control planes is said where the flags are set (apiserver.go, etcd.go).
package localfleet
