/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs.java - what a pair of acquire() and onSuccess() costs in Netflix concurrency-limits, measured
 * as weir-micro measures a pair. It says "warm" when all is compiled; then, for each line on standard
 * input, it measures a round with all numbers of threads.
 *
 *	java Pairs vegas|gradient2|vegas-windowed PAIRS THREADS...
 *
 * A process measures one limit only. With several, the compiler could not know which limit a call goes
 * to, and would inline less than in a program that uses one.
 */
import com.netflix.concurrency.limits.Limit;
import com.netflix.concurrency.limits.Limiter;
import com.netflix.concurrency.limits.limit.Gradient2Limit;
import com.netflix.concurrency.limits.limit.VegasLimit;
import com.netflix.concurrency.limits.limit.WindowedLimit;
import com.netflix.concurrency.limits.limiter.SimpleLimiter;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;

public final class Pairs {
	/* More permits than all threads hold at once, as in bench/micro/rig.h. */
	private static final int LIMIT = 100000;

	/* Pairs in a call of loop(): many calls let the compiler replace it while threads run. */
	private static final int BATCH = 1000;

	/* Rounds of all numbers of threads before the first that counts. */
	private static final int WARM_UPS = 2;

	private static final class Member extends Thread {
		private final Limiter<Void> limiter;
		private final CyclicBarrier ready;
		private final int pairs;
		private long took, refused;

		Member(Limiter<Void> limiter, CyclicBarrier ready, int pairs) {
			this.limiter = limiter;
			this.ready = ready;
			this.pairs = pairs;
		}

		@Override
		public void run() {
			try {
				ready.await();
			} catch (Exception e) {
				throw new IllegalStateException(e);
			}
			long start = System.nanoTime();
			for (int done = 0; done < pairs; done += BATCH)
				refused += loop(limiter, Math.min(BATCH, pairs - done));
			took = System.nanoTime() - start;
		}
	}

	private static int loop(Limiter<Void> limiter, int times) {
		int refused = 0;

		for (int i = 0; i < times; i++) {
			Optional<Limiter.Listener> listener = limiter.acquire(null);

			if (listener.isPresent())
				listener.get().onSuccess();
			else
				refused++;
		}
		return refused;
	}

	private static VegasLimit vegas() {
		return VegasLimit.newBuilder().initialLimit(LIMIT).maxConcurrency(LIMIT).build();
	}

	/* All limits stay at LIMIT. */
	private static Limit limit(String name) {
		switch (name) {
		case "vegas":
			return vegas();
		case "gradient2":
			return Gradient2Limit.newBuilder().initialLimit(LIMIT).minLimit(LIMIT)
				.maxConcurrency(LIMIT).build();
		case "vegas-windowed":
			/* By default a window leaves out calls as short as these. */
			return WindowedLimit.newBuilder().minRttThreshold(0, TimeUnit.NANOSECONDS)
				.build(vegas());
		default:
			throw new IllegalArgumentException("there is no limit " + name);
		}
	}

	/* Nanoseconds of a pair in one thread: the mean over the threads, from their common start. */
	private static double measure(String name, int pairs, int threads) throws InterruptedException {
		Limiter<Void> limiter = SimpleLimiter.newBuilder().limit(limit(name)).build();
		CyclicBarrier ready = new CyclicBarrier(threads);
		Member[] team = new Member[threads];
		double ns = 0;

		for (int i = 0; i < threads; i++) {
			team[i] = new Member(limiter, ready, pairs);
			team[i].start();
		}
		for (Member member : team) {
			member.join();
			if (member.took == 0 || member.refused != 0)
				throw new IllegalStateException(name + " failed, or refused a call");
			ns += (double) member.took / pairs / threads;
		}
		return ns;
	}

	public static void main(String[] args) throws Exception {
		BufferedReader rounds = new BufferedReader(new InputStreamReader(System.in));
		int pairs = Integer.parseInt(args[1]);

		for (int i = 0; i < WARM_UPS; i++)
			for (int n = 2; n < args.length; n++)
				measure(args[0], pairs, Integer.parseInt(args[n]));
		System.out.println("warm");
		while (rounds.readLine() != null)
			for (int n = 2; n < args.length; n++)
				System.out.printf(Locale.ROOT, "reference-%s\t%s\t%.1f%n", args[0],
					args[n], measure(args[0], pairs, Integer.parseInt(args[n])));
	}
}
