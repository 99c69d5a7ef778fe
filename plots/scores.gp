# SPDX-License-Identifier: BSD-2-Clause
# Reads a table of scores, with a row for each limit, scenario and seed, and computes, for the i-th limit
# and the k-th scenario in the order of the file:
#
#	limits, scenarios                     their numbers
#	limit[i], scenario[k], family[k]      names
#	mean(i, k)                            index in these arrays of geometric means over seeds:
#	  power[], goodput[], latency[]       NaN if there is none
#	power_all[i], goodput_all[i], latency_all[i]   geometric means over scenarios
#	worst[i], worst_in[i]                 least power, and the index of its scenario
#	ranked[r]                             index of the limit with the r-th power
#
# Set before: scores (a file).

array limit[400]
array scenario[400]
array family[400]
limits = 0
scenarios = 0
i_last = 1
k_last = 1
find_limit(name, i) = i > limits ? (limits = i, limit[i] = name, i) : \
	limit[i] eq name ? i : find_limit(name, i + 1)
find_scenario(name, of, k) = k > scenarios ? (scenarios = k, scenario[k] = name, family[k] = of, k) : \
	scenario[k] eq name ? k : find_scenario(name, of, k + 1)
number_limit(name) = (i_last = limits > 0 && limit[i_last] eq name ? i_last : find_limit(name, 1))
number_scenario(name, of) = \
	(k_last = scenarios > 0 && scenario[k_last] eq name ? k_last : find_scenario(name, of, 1))
cell(name, of, in) = 1000 * number_limit(name) + number_scenario(in, of)

# A score of 0 counts as a millionth, so that the geometric mean is not 0.
safe_log(x) = log(x > 1e-6 ? x : 1e-6)

# Widen the range, as gnuplot warns about a range of one point.
set xrange [0:1e9]
set yrange [-100:100]
set table $powers
plot scores skip 1 using (cell(strcol(1), strcol(2), strcol(3))):(safe_log($5)) smooth unique
set table $goodputs
plot scores skip 1 using (cell(strcol(1), strcol(2), strcol(3))):(safe_log($6)) smooth unique
set table $latencies
plot scores skip 1 using (cell(strcol(1), strcol(2), strcol(3))):(safe_log($7)) smooth unique
unset table
set xrange [*:*]
set yrange [*:*]

mean(i, k) = (i - 1) * scenarios + k
array power[limits * scenarios]
array goodput[limits * scenarios]
array latency[limits * scenarios]
do for [i = 1:limits * scenarios] {
	power[i] = NaN
	goodput[i] = NaN
	latency[i] = NaN
}
place_of(number) = mean(int(number) / 1000, int(number) % 1000)
set datafile separator whitespace
stats $powers using (power[place_of($1)] = exp($2)) nooutput
stats $goodputs using (goodput[place_of($1)] = exp($2)) nooutput
stats $latencies using (latency[place_of($1)] = exp($2)) nooutput
set datafile separator "\t"

array power_all[limits]
array goodput_all[limits]
array latency_all[limits]
array worst[limits]
array worst_in[limits]
array ranked[limits]
number(x) = x == x
some(n) = n > 0 ? n : NaN
do for [i = 1:limits] {
	log_power = 0
	log_goodput = 0
	log_latency = 0
	known = 0
	worst[i] = NaN
	worst_in[i] = 1
	do for [k = 1:scenarios] {
		m = mean(i, k)
		if (number(power[m])) {
			known = known + 1
			log_power = log_power + safe_log(power[m])
			log_goodput = log_goodput + safe_log(goodput[m])
			log_latency = log_latency + safe_log(latency[m])
			if (!number(worst[i]) || power[m] < worst[i]) {
				worst[i] = power[m]
				worst_in[i] = k
			}
		}
	}
	power_all[i] = exp(log_power / some(known))
	goodput_all[i] = exp(log_goodput / some(known))
	latency_all[i] = exp(log_latency / some(known))
	r = i
	while (r > 1 && power_all[ranked[r > 1 ? r - 1 : 1]] < power_all[i]) {
		ranked[r] = ranked[r - 1]
		r = r - 1
	}
	ranked[r] = i
}
