# Numbers of CalibrationCurves, givitiR and ResourceSelection on the data of validation.R, for programs.csv.
#
#   Rscript tests/reference/programs.R [FILE]
#
# Without FILE the installed packages are called. These are on CRAN, which could not be reached: FILE defined
# val.prob.ci.2, givitiCalibrationBelt and hoslem.test as in the authors' sources, without plots and checks of arguments
# (BavoDC/CalibrationCurves 03c70c4; givitiR 1.3, cran/givitiR 759987f, with rootSolve 0fdad1c and alabama 06599ed;
# psolymos/ResourceSelection 28be90e). The step of rootSolve's numerical derivatives was taken to be 1e-8. FILE is not part
# of this repository. R 4.2.2, rms 6.5.0.
file <- commandArgs(trailingOnly = TRUE)
if (length(file)) source(file) else {library(CalibrationCurves); library(givitiR); library(ResourceSelection)}
folder <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
sets <- read.csv(file.path(folder, "validation_data.csv"))

found <- NULL
note <- function(data, program, values) {
  found <<- rbind(found, data.frame(data, program, quantity = names(values), value = signif(unname(values), 12)))
}
pdf(NULL)
for (name in unique(sets$data)) {
  y <- sets$y[sets$data == name]
  p <- sets$p[sets$data == name]
  note(name, "val.prob.ci.2", val.prob.ci.2(p, y)$stats)
  chi <- hoslem.test(y, p)
  note(name, "hoslem.test", c(statistic = unname(chi$statistic), df = unname(chi$parameter), pvalue = unname(chi$p.value)))
  for (kind in c("external", "internal")) {
    belt <- givitiCalibrationBelt(y, p, kind)
    program <- paste("givitiR", kind)
    note(name, program, c(degree = belt$m, statistic = unname(belt$statistic), pvalue = unname(belt$p.value)))
    for (side in c("over", "under")) {
      ends <- unlist(belt$intersByConfLevel[[1]][[paste0(side, "Bisector")]])
      if (length(ends)) note(name, program, setNames(ends, paste(side, seq_along(ends))))
    }
    for (k in seq(1, 200, 20)) for (level in 1:2) {
      at <- paste(belt$confLevels[level], "at", signif(belt$seqP[k], 12))
      bound <- belt$cbBoundByConfLevel[[level]]
      note(name, program, setNames(c(bound$L[k], bound$U[k]), paste(c("lower", "upper"), at)))
    }
  }
}
write.csv(found, file.path(folder, "programs.csv"), row.names = FALSE, quote = FALSE)
