"""Machines of a simulated VIM that can be logged in to, and the clusters that kubeadm makes of them.

They answer what our steps ask, and keep the rules that matter to an order of steps: tokens end, certificates are
uploaded before a master joins, etcd changes its members only with a quorum, the balancer leads only to masters that it
was told of, a dead machine's node is not Ready. All state is in the simulated VIM's file, so it outlives a kill -9.

What is otherwise than on real machines:

- Nothing takes time. What a controller would do in the background is done within the call that gives cause for it.
- A dead node is not Ready at once, and its pods are replaced at once; a real cluster waits for 40 s, and for 5 minutes.
- Pods that are deleted are gone, unless their node is dead: then they stay until it is removed.
- There are controllers for Deployments, DaemonSets, Nodes, persistent volumes and their claims only. All other kinds
  are kept, and nothing comes of them.
- Schemas are not checked, but for names. Lists in a manifest are replaced as a whole, and never merged.
- Who asks is not checked: the API is reached as its administrator only.
- A script that is not known here ends with exit code 127, so that a new step can't pass unseen.
"""
