# Numbers of R for tests/clinical/test_clinical_calibration_programs.py.
#
#   Rscript tests/reference/validation.R
#
# Run with R 4.2.2, rms 6.5.0, Hmisc 4.8.0, pROC 1.18.0 and MASS 7.3 (Debian 12). It writes validation_data.csv, labels
# and risks with six digits, and validation.csv, what the programs print of them with more digits.
suppressMessages({library(rms); library(pROC); library(MASS); library(boot)})
folder <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))

# Three public data sets. Risks of other patients (external), and of those that the model was fitted to (internal).
data(Pima.tr); data(Pima.te); data(birthwt); data(melanoma)
pima <- predict(glm(type ~ ., binomial, Pima.tr), Pima.te, type = "response")
birthwt$race <- factor(birthwt$race)
odd <- seq(1, nrow(birthwt), 2)
low <- glm(low ~ age + lwt + race + smoke + ptl + ht + ui, binomial, birthwt)
melanoma <- subset(melanoma, status != 3)
melanoma$died <- as.integer(melanoma$status == 1)
death <- glm(died ~ sex + age + thickness + ulcer, binomial, melanoma)
half <- seq(1, nrow(melanoma), 2)
other <- predict(update(death, data = melanoma[half, ]), melanoma[-half, ], type = "response")
sets <- rbind(
  data.frame(data = "pima", y = as.integer(Pima.te$type == "Yes"), p = pima),
  data.frame(data = "melanoma", y = melanoma$died[-half], p = other),
  data.frame(data = "birthwt", y = birthwt$low, p = fitted(low))
)
sets$p <- round(sets$p, 6)
write.csv(sets, file.path(folder, "validation_data.csv"), row.names = FALSE, quote = FALSE)

found <- NULL
note <- function(data, program, values) {
  found <<- rbind(found, data.frame(data, program, quantity = names(values), value = signif(unname(values), 12)))
}
for (name in unique(sets$data)) {
  y <- sets$y[sets$data == name]
  p <- sets$p[sets$data == name]
  note(name, "val.prob", unclass(val.prob(p, y, pl = FALSE)))
  r <- roc(y, p, direction = "<", quiet = TRUE)
  note(name, "pROC", c(auc = as.numeric(auc(r)), var = var(r)))
  smooth <- abs(fitted(loess(y ~ p)) - p)
  note(name, "loess", c(ICI = mean(smooth), E50 = median(smooth), E90 = unname(quantile(smooth, 0.9)),
                        Emax = max(smooth), ECI = 100 * mean(smooth^2)))
  strict <- glm.control(epsilon = 1e-14, maxit = 100)
  large <- glm(y ~ 1, binomial, offset = qlogis(p), control = strict)
  both <- glm(y ~ qlogis(p), binomial, control = strict)
  note(name, "glm", c(intercept = unname(coef(large)), intercept_of_slope = unname(coef(both)[1]),
                      slope = unname(coef(both)[2])))
  # Hosmer and Lemeshow's groups by quantiles, as hoslem.test of ResourceSelection documents them
  group <- cut(p, quantile(p, 0:10 / 10), include.lowest = TRUE)
  seen <- xtabs(cbind(1 - y, y) ~ group)
  meant <- xtabs(cbind(1 - p, p) ~ group)
  chi <- sum((seen - meant)^2 / meant)
  note(name, "hosmer_lemeshow", c(statistic = chi, pvalue = pchisq(chi, 8, lower.tail = FALSE),
                                  external = pchisq(chi, 10, lower.tail = FALSE)))
}

# Internal validation of logistic regressions on scikit-learn's data, with the resamples after set.seed(20)
measures <- c("Dxy", "R2", "Intercept", "Slope", "D", "U", "Q", "B")
for (name in c("diabetes", "wine")) {
  rows <- read.csv(file.path(folder, "validation_features.csv"))
  rows <- rows[rows$data == name, ]
  fit <- lrm(y ~ a + b + c, rows, x = TRUE, y = TRUE, tol = 1e-12, eps = 1e-12)
  set.seed(20)
  checked <- validate(fit, B = 20)
  for (column in c("training", "test", "index.corrected")) {
    note(name, paste("validate", column), setNames(checked[measures, column], measures))
  }
  set.seed(20)
  risks <- c(0.2, 0.4, 0.6, 0.8)
  curve <- calibrate(fit, B = 20, predy = risks)[, "calibrated.corrected"]
  note(name, "calibrate", setNames(curve, risks))
}
write.csv(found, file.path(folder, "validation.csv"), row.names = FALSE, quote = FALSE)

# 1,000 risks of the second example of pmvalsampsize's help page, with its seed
set.seed(123456)
risks <- data.frame(p = signif(rbeta(1000, 0.5, 0.5), 6))
write.csv(risks, file.path(folder, "beta_risks.csv"), row.names = FALSE, quote = FALSE)
