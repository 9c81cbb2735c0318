# sequential_trials.csv: posterior probabilities of F. Harrell's page "Continuous Learning from Data" (fharrell.com, 2017).
#
#   Rscript tests/reference/sequential_trials.R
#
# 50,000 trials of up to 500 patients with an effect from a mixture of two normal distributions. A trial ends when the
# effect is above 0 with probability 0.95, or below 0.05 with probability 0.9; those that do not end are written: the
# probability that the effect is above 0, and whether it is. Random numbers are drawn in the order of the page, whose
# val.prob has the numbers of docs/clinical-programs.md. Run with R 4.2.2 and Hmisc 4.8.0.
suppressMessages(library(Hmisc))
folder <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
sds <- c(1 / qnorm(0.9), 0.25 / qnorm(0.95))
patients <- 1:500
set.seed(1)
found <- NULL
for (trial in 1:50000) {
  spread <- sds[sample(1:2, 1, prob = c(0.5, 0.5))]
  effect <- rnorm(1) * spread
  means <- cumsum(rnorm(500, effect)) / patients
  below <- gbayesMixPost(means, 1 / patients, d0 = 0, d1 = 0, v0 = sds[1]^2, v1 = sds[2]^2, mix = 0.5, what = "cdf")
  if (all(1 - below(0) < 0.95 & below(0.05) < 0.9)) {
    found <- rbind(found, data.frame(y = as.integer(effect > 0), p = signif(1 - below(0)[500], 14)))
  }
}
write.csv(found, file.path(folder, "sequential_trials.csv"), row.names = FALSE, quote = FALSE)
